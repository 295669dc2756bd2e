package systemd_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/lab"
)

// --for gives a volume's limit to a unit, also on v1 to one that has no group of its own
// yet.
func TestAVolumeIsForAUnit(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.Loop, lab.FS("ext4"))
	if e.Cgroups.Blkio == "" {
		lab.Need(t, lab.Long)
	}
	disk := lab.Disk(t, lab.FS("ext4"))
	unit := unitFile(t, "weir-volume", "/bin/sleep 600")
	at := filepath.Join(disk.Dir, "volume")
	output(t, "weir", "volume", "create", at, "--quiet", "--size", "32MiB", "--on", disk.Dir, "--write", "3MB/s", "--for", "unit:"+unit)
	t.Cleanup(func() {
		output(t, "weir", "volume", "down", "--quiet", at)
		output(t, "weir", "volume", "delete", "--quiet", at)
	})
	var list struct {
		Volumes []struct{ Mount, Number string }
	}
	if err := json.Unmarshal([]byte(output(t, "weir", "volume", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, v := range list.Volumes {
		want := v.Number + " 3000000"
		if e.Cgroups.Blkio == "" {
			want = v.Number + " rbps=max wbps=3000000 riops=max wiops=max"
		}
		found = found || v.Mount == at && rules(t, e, "/system.slice/"+unit) == want
	}
	if !found {
		t.Errorf("the unit's rule is %q, and the volumes are %+v", rules(t, e, "/system.slice/"+unit), list.Volumes)
	}
	output(t, "weir", "clear", "unit:"+unit, "--quiet")
}
