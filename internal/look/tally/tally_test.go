package tally

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// What a command wrote after the last look that found it took no longer than since then, and not
// less: a look that comes after its end, and before it is known, has nothing to do with that.
func TestWhatAnEndedCommandWroteTookItsTime(t *testing.T) {
	const dir = cgrouptest.V2Dir + "/g/"
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{
		dir + "cgroup.procs": fmt.Sprintln(os.Getpid()), dir + "io.stat": "", dir + "cgroup.type": "domain\n",
	})
	tally, err := Start(h.Group("/g"), []Rule{{Device: disk, Limit: limit.Limit{WBPS: limit.PerSecond(10 * megabyte)}}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond)
	h.Write(dir+"cgroup.procs", "") // it has ended
	gone := time.Now()
	time.Sleep(150 * time.Millisecond)
	sum := tally.End(t.Context(), 42*megabyte)
	if took := sum.Writing.Duration(); took < time.Since(gone) || took > time.Since(gone)+100*time.Millisecond || sum.Written < 42*megabyte {
		t.Errorf("%d bytes in %s; it ended %s ago", sum.Written, took, time.Since(gone))
	}
}
