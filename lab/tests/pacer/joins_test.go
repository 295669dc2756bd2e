package pacer_test

import (
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
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
	weir(t, "set", o.target, "--write", fmt.Sprint(lab.Scaled(e, 10<<20)), "--on", disk.Dir, "--hold", "pacer")
	const atOnce = 8
	var failed, next atomic.Int64
	var all sync.WaitGroup
	joins := int64(lab.Times(t, "WEIR_JOINS", 24))
	began := time.Now()
	for range atOnce {
		all.Go(func() {
			for next.Add(1) <= joins {
				if out, err := exec.CommandContext(t.Context(), "sh", "-c", o.join+"; exec true").CombinedOutput(); err != nil {
					failed.Add(1)
					t.Errorf("%v: %s", err, out)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d of %d joined and ended, in %s", joins-failed.Load(), joins, time.Since(began).Round(time.Millisecond))
	weir(t, "clear", o.target)
	lab.Await(t, 5*time.Second, "weir's groups to be gone", func() bool { return len(o.children(t)) == 0 })
}
