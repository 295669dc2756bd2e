package full

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// Without a place a limit is on every disk of the container's mounts, also on that
// of a volume on a second one; and it holds there, writes and cold reads.
func (d containerTest) volume(t *testing.T) {
	second := lab.Disk(t, lab.FS("ext4"))
	rate := lab.Scaled(d.e, 10e6)
	size := int64(64 << 20)
	run(t, "dd", "if=/dev/zero", "of="+second.Dir+"/read", "bs=1M", fmt.Sprintf("count=%d", size>>20), "conv=fsync", "status=none")

	write := strings.ReplaceAll(strings.ReplaceAll(endless, "/data/f", "/vol/f"), "count=16000 conv=notrunc", "count=256 conv=notrunc,fsync")
	command := []string{"/bin/sh", "-c", write}
	if d.e.Cgroups.Blkio != "" {
		job := load.Job{Path: load.Direct, File: "/vol/f", Block: 64 << 10, Size: 64 << 20, For: time.Hour}
		command = append([]string{"/weir", "__load"}, job.Args()...)
	}
	volume := []string{"--volume", second.Dir + ":/vol"}
	d.container(t, "writer", volume, command...)
	_, said := mustWeir(t, "set", d.engine+":writer", "--write", fmt.Sprint(rate))
	if !strings.Contains(said, second.Node) || !strings.Contains(said, d.disk.Node) {
		t.Errorf("it said nothing of %s and %s:\n%s", d.disk.Node, second.Node, said)
	}
	for _, disk := range []*lab.TestDisk{d.disk, second} {
		on := d
		on.disk = disk
		if got, want := on.rule(t, "writer"), d.ruleOf(rate); got != want {
			t.Errorf("the rule of %s is %q, want %q", disk.Node, got, want)
		}
	}
	time.Sleep(2 * time.Second) // what the promise allows
	lab.Ratio(t, "a volume's writes", float64(rate), lab.Written, func() float64 {
		arrivals := d.watch(t, "writer", second)
		return arrivals.RateOver(t, 4*time.Second)
	})
	run(t, d.engine, "rm", "--force", "writer")
	if testing.Short() { // lab/tests/agree measures cold reads under the same rules
		return
	}

	read := load.Job{Path: load.Buffered, Read: true, File: "/vol/read", Block: 64 << 10, Size: size, For: time.Hour}
	d.container(t, "reader", volume, append([]string{"/weir", "__load"}, read.Args()...)...)
	mustWeir(t, "set", d.engine+":reader", "--read", fmt.Sprint(rate))
	time.Sleep(2 * time.Second)
	lab.Ratio(t, "a volume's cold reads", float64(rate), lab.Written, func() float64 {
		began := time.Now()
		before, _ := lab.DeviceBytes(t, second.Number)
		time.Sleep(3 * time.Second)
		after, _ := lab.DeviceBytes(t, second.Number)
		return float64(after-before) / time.Since(began).Seconds()
	})
}
