package pacer_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// A process that joins a group that is paused nearly all the time starts and ends there, as
// docker exec and a probe do. None is refused, and none is left.
func TestJoinsOfTheStopped(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	o := newOwned(t, e, disk.Dir, "lab-joins")
	const atOnce = 8
	joins := int64(lab.Times(t, "WEIR_JOINS", 24))
	// Each step is a test of its own, so that the console has the name of one that does not end.
	t.Run("set", func(t *testing.T) {
		bounded(t, o, "weir", "set", o.target, "--write", fmt.Sprint(lab.Scaled(e, 10<<20)), "--on", disk.Dir, "--hold", "pacer")
	})
	t.Run("joins", func(t *testing.T) {
		var failed, next atomic.Int64
		var all sync.WaitGroup
		began := time.Now()
		for range atOnce {
			all.Go(func() {
				for next.Add(1) <= joins {
					if !bounded(t, o, "sh", "-c", o.join+"; exec true") {
						failed.Add(1)
					}
				}
			})
		}
		all.Wait()
		t.Logf("%d of %d joined and ended, in %s", joins-failed.Load(), joins, time.Since(began).Round(time.Millisecond))
	})
	t.Run("clear", func(t *testing.T) { bounded(t, o, "weir", "clear", o.target) })
	lab.Await(t, 5*time.Second, "weir's groups to be gone", func() bool { return len(o.children(t)) == 0 })
}

// stepMost is how long a command may take that needs no time.
const stepMost = time.Minute

// bounded runs a command, which has to succeed. Of one that does not end it tells where it is, and what is paused.
func bounded(t *testing.T, o owned, name string, args ...string) (ok bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience(t, stepMost))
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, 5*time.Second
	cmd.Cancel = func() error {
		for _, file := range []string{"status", "stack", "wchan", "cgroup"} {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, file))
			t.Logf("%s of %s: %s (%v)", file, name, text, err)
		}
		cells, _ := filepath.Glob(filepath.Join(filepath.Dir(o.freezer), "weir-pace-*", filepath.Base(o.freezer)))
		outer, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(o.freezer)), "weir-pace-*", filepath.Base(o.freezer)))
		for _, file := range append(cells, outer...) {
			text, err := os.ReadFile(file)
			t.Logf("%s: %s (%v)", file, text, err)
		}
		interrupts, _ := os.ReadFile("/proc/interrupts")
		t.Logf("/proc/interrupts:\n%s", interrupts)
		return cmd.Process.Signal(syscall.SIGQUIT) // Go's programs say what they wait for
	}
	if err := cmd.Run(); err != nil {
		t.Errorf("%s %s: %v: %s", name, strings.Join(args, " "), err, said.Bytes())
		return false
	}
	return true
}
