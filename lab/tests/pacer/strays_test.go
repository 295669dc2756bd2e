package pacer_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// A pacer that ends removes empty cells that are nobody's. One that may be about to get a process stays, and so
// does what is no cell.
func TestStraysAreRemoved(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	o := newOwned(t, e, disk.Dir, "lab-strays")
	weir(t, "set", o.target, "--write", "4MiB/s", "--on", disk.Dir, "--hold", "pacer")
	lab.Await(t, 20*time.Second, "the cell of the writer", func() bool { return len(o.children(t)) == 1 })
	group := filepath.Dir(o.freezer)
	there := map[string]bool{
		filepath.Join(group, "weir-pace-0123abcd"):                   false,
		filepath.Join(filepath.Dir(group), "weir-pace-0123abcd"):     false,
		filepath.Join(filepath.Dir(group), "weir-pace-4567cdef"):     true,
		filepath.Join(filepath.Dir(group), "lab-weir-pace-0123abcd"): true,
	}
	for dir, stays := range there {
		lab.Cgroup(t, dir)
		if was := time.Now().Add(-time.Minute); !stays && os.Chtimes(dir, was, was) != nil {
			t.Fatalf("%s cannot be made to look old", dir)
		}
	}
	weir(t, "clear", o.target)
	lab.Await(t, 20*time.Second, "the end of the pacer", func() bool { return len(lab.Called(t, "__pacer")) == 0 })
	for dir, stays := range there {
		if _, err := os.Stat(dir); os.IsNotExist(err) == stays {
			t.Errorf("%s: %v, want it there: %t", dir, err, stays)
		}
	}
}

// If the processes of a group end while its pacer and the guards are dead, the next pacer removes the cell that they
// were in. Else the owner of the group could not remove it.
func TestADeadPacersEmptyCellIsRemoved(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	o := newOwned(t, e, disk.Dir, "lab-emptied")
	weir(t, "set", o.target, "--write", "4MiB/s", "--on", disk.Dir, "--hold", "pacer")
	lab.Await(t, 20*time.Second, "the cell of the writer", func() bool { return len(o.children(t)) == 1 })
	cell := o.children(t)[0]
	lab.Await(t, 20*time.Second, "the end of the pacer", func() bool {
		all := append(lab.Called(t, "__pacer"), lab.Called(t, "__guard")...)
		send(t, unix.SIGKILL, all...) // each time: a guard may have started another one meanwhile
		return len(all) == 0
	})
	thaw, line := filepath.Join(cell, "cgroup.freeze"), "0"
	if strings.HasSuffix(o.freezer, ".state") {
		thaw, line = filepath.Join(cell, "freezer.state"), "THAWED"
	}
	if err := os.WriteFile(thaw, []byte(line), 0); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 20*time.Second, "the end of the writer", func() bool {
		text, err := os.ReadFile(filepath.Join(cell, "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				send(t, unix.SIGKILL, pid)
			}
		}
		return len(text) == 0
	})
	weir(t, "show", "--for", "0")
	lab.Await(t, 10*time.Second, "the cell to be gone", func() bool { return len(o.children(t)) == 0 })
	weir(t, "clear", o.target)
}
