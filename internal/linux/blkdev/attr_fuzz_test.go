package blkdev

import (
	"strings"
	"testing"
)

// FuzzAttributes: who makes a device mapper device or a loop device chooses its names, and
// sysfs prints them as they are. A device that is read has its number, and ends.
func FuzzAttributes(f *testing.F) {
	f.Add("vg0-db", "LVM-x", "/srv/a.img", "2048", "1 0 8 0 1 0 8")
	f.Add("../../etc", "mpath-x", "/x (deleted)", "-1", "x")
	f.Add("a\nb", "", "", "99999999999999999999", "")
	f.Fuzz(func(t *testing.T, name, uuid, backing, size, stat string) {
		for _, text := range []string{name, uuid, backing, size, stat} {
			if len(text) > maxAttr {
				return // the kernel prints no more
			}
		}
		tr := newTree(t)
		disk := tr.disk("sda", "8:0")
		tr.dm("dm-0", "253:0", name, uuid, disk)
		tr.loop("loop0", "7:0", backing, "1")
		tr.file("sys/"+disk+"/size", size)
		tr.file("sys/"+disk+"/stat", stat)
		for number, kind := range map[Number]Kind{{253, 0}: DM, {7, 0}: Loop, {8, 0}: Disk} {
			d, err := tr.fs().Device(t.Context(), number)
			if err == nil && (d.Number != number || d.Kind != kind || d.SizeBytes < 0 || !strings.HasPrefix(d.Node, "/dev/")) {
				t.Errorf("%s: %+v", number, d)
			}
		}
		_, _ = tr.fs().Counters(Number{8, 0}) // must end
	})
}
