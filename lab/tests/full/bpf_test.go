package full

import (
	"slices"
	"strconv"
	"testing"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/submitters"
)

// TestBPFSeesUnits watches a transient unit write to a disk: BPF and systemd are in
// one guest, and the group that BPF speaks of is the unit's.
func TestBPFSeesUnits(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.BPF, lab.Systemd, lab.Root, lab.V2)
	disk := lab.RawDisk(t)
	watch, err := submitters.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := watch.Close(); err != nil {
			t.Error(err)
		}
	})
	const unit = "weir-lab-writer"
	said := run(t, "systemd-run", "--quiet", "--pipe", "--wait", "--unit="+unit, "sh", "-c",
		"stat -c %i "+e.Cgroups.Unified+"/system.slice/"+unit+".service && "+
			"exec dd if=/dev/zero of="+disk.Node+" bs=4096 count=1 oflag=direct status=none")
	want, err := strconv.ParseUint(said, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := watch.Groups()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(groups, want) {
		t.Errorf("groups that submitted I/O: %d, want the unit's, %d, among them", groups, want)
	}
}
