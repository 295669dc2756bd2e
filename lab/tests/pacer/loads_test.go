package pacer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
)

// gapMost is how long the pacer may do something else than to look at its groups and askers.
const gapMost = 10 * time.Millisecond

// While the pacer gets the BPF programs that tell how much of folios is written, it goes on. How
// long it does something else is how long it takes to answer.
func TestLoadingProgramsHoldsNobodyUp(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.Lane("native"), lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	file := filepath.Join(disk.Dir, "f")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(e.Cgroups.Blkio, "lab-loads")
	lab.Cgroup(t, group)
	const rate, seconds = 10_000_000, 2
	c, limited := pacer.Client{State: state.At("/")}, pacer.Place{Controller: "blkio", Path: "/lab-loads"}
	most := time.Hour
	for range 3 { // a busy machine can hold up anybody
		lab.Await(t, 20*time.Second, "the end of the last pacer", func() bool { return len(lab.Called(t, "__pacer")) == 0 })
		cache(t, file, 128<<20)
		// It is moved to where it can be paused, which can take as long, before it writes.
		begun := filepath.Join(t.TempDir(), "begun")
		script := fmt.Sprintf(`echo $$ >%s/cgroup.procs; until [ -e %s ]; do sleep 0.1; done; exec env %s='%sscattered' %s %s %d`, group, begun, writer, overwrite, program, file, rate*seconds)
		cmd := exec.Command("sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		weir(t, "set", "cgroup:/lab-loads", "--write", fmt.Sprint(rate), "--on", disk.Dir)
		time.Sleep(500 * time.Millisecond) // in which it is moved
		if err := os.WriteFile(begun, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		gap, spare := answers(t, c, limited, cmd)
		if spare == 0 {
			t.Error("no programs were loaded")
		}
		t.Logf("the longest gap is %s", gap)
		most = min(most, gap)
		weir(t, "clear", "cgroup:/lab-loads")
		if most <= gapMost {
			break
		}
	}
	if most > gapMost {
		t.Errorf("the pacer did something else for %s, want at most %s", most, gapMost)
	}
}

// answers asks the pacer about a group again and again until a command has ended. It returns the
// longest time that an answer took, and what of folios was not written.
func answers(t *testing.T, c pacer.Client, limited pacer.Place, cmd *exec.Cmd) (longest time.Duration, spare uint64) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		began := time.Now()
		seen, err := c.Seen(limited)
		if err != nil {
			t.Fatal(err)
		}
		longest, spare = max(longest, time.Since(began)), max(spare, seen.Spare)
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return longest, spare
		case <-time.After(500 * time.Microsecond):
		}
	}
}
