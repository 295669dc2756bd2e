package smoke

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/submitters"
)

// TestBPFTraces loads a program, attaches it to a function of the kernel, and lets
// this process do what it notes.
func TestBPFTraces(t *testing.T) {
	e := lab.Need(t, lab.BPF, lab.Root)
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
	if err := writeDirect(disk.Node, 4096); err != nil {
		t.Fatal(err)
	}
	groups, err := watch.Groups()
	if err != nil {
		t.Fatal(err)
	}
	if want := ownGroup(t, e.Cgroups.Unified); !slices.Contains(groups, want) {
		t.Errorf("groups that submitted I/O: %d, want %d among them", groups, want)
	}
}

// ownGroup is the number of this process's group in cgroup2: 1 is the root, also where
// cgroup2 is mounted nowhere.
func ownGroup(t *testing.T, unified string) uint64 {
	t.Helper()
	if unified == "" {
		return 1
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(groups)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			var st unix.Stat_t
			if err := unix.Stat(filepath.Join(unified, path), &st); err != nil {
				t.Fatal(err)
			}
			return st.Ino
		}
	}
	t.Fatalf("no group in cgroup2: %q", groups)
	return 0
}
