package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// A unit has the io controller once it has a limit. weir says that the kernel does not hold at first what
// the unit has written before.
func TestTheFirstLimitTurnsIOOn(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	const unit, slice = "weir-late.service", "weirlate.slice" // in a slice with others that have it, the unit would have it too
	output(t, "systemd-run", "--quiet", "--collect", "--unit="+unit, "--slice="+slice, "sleep", "600")
	t.Cleanup(func() {
		output(t, "weir", "clear", "unit:"+unit, "--quiet")
		output(t, "systemctl", "stop", slice) // and the unit
	})
	file := filepath.Join(e.Cgroups.Unified, slice, unit, "io.max")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Fatalf("the unit has io.max from the start: %v", err)
	}
	for _, first := range []bool{true, false} {
		said, err := exec.Command("weir", "set", "unit:"+unit, "--hold", "kernel", "--write", "8MB/s", "--on", disk.Dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		t.Logf("%s", said)
		if is := strings.Contains(string(said), "expected NOT to hold at first: buffered writes to files that the group has written before"); is != first {
			t.Errorf("the first time: %v; of files that it has written before it speaks: %v", first, is)
		}
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}
