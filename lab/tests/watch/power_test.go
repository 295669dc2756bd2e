package watch_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/lab"
)

// cutsVariable says how often TestHistoryAfterAPowerCut cuts the power.
const cutsVariable = "WEIR_HISTORY_CUTS"

// shutdown is FS_IOC_SHUTDOWN of ext4 and XFS, and noLogFlush its flag for a file system that ends
// as by a power cut: nothing more reaches the disk, not even the journal (fs/ext4/ioctl.c).
const shutdown, noLogFlush = 0x8004587d, 2

// History on a real file system opens after a power cut during recording. The finest level has
// lost at most what docs/guide/top.md says, and the others only the step that was not over.
func TestHistoryAfterAPowerCut(t *testing.T) {
	lab.Need(t, lab.Guest, lab.Root, lab.Once)
	cuts := 4
	if text := os.Getenv(cutsVariable); text != "" {
		var err error
		if cuts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			disk := lab.Disk(t, lab.FS(kind))
			next, lost, most := 1, 0, 0
			for n := range cuts / 2 {
				told := recordUntilCut(t, disk, next)
				if told < next {
					t.Fatalf("cut %d: nothing was recorded", n)
				}
				for _, l := range powerLevels() {
					last := lastOf(t, disk, l)
					if want := promised(l, next, told); last < want {
						t.Fatalf("cut %d: seconds from %d to %d were kept, and level %s ends at %d instead of %d", n, next, told, l.Step, last, want)
					}
					if l.Step == time.Second {
						lost, most = lost+max(told-last, 0), max(most, told-last)
						next = max(told, last)
					}
				}
				next += 2
			}
			t.Logf("%d cuts, %d seconds recorded, %d lost, at most %d at once", cuts/2, next, lost, most)
		})
	}
}

// powerLevels turn over within a few cuts.
func powerLevels() []history.Level {
	return []history.Level{{Step: time.Second, Block: 64 << 10, Blocks: 8}, {Step: 10 * time.Second, Block: 64 << 10, Blocks: 4}, {Step: time.Minute, Block: 64 << 10, Blocks: 4}}
}

// powerStart is the time of second 0, at which a step of each level begins.
var powerStart = time.Unix(1_700_000_040, 0)

// second is what happens in a second: a group writes as many bytes, and others never change.
func second(n int) *watch.Snapshot {
	s := &watch.Snapshot{At: powerStart.Add(time.Duration(n) * time.Second), Window: time.Second, Version: cgroupfs.V2}
	for i := range 100 {
		path := fmt.Sprintf("/g%02d", i)
		d := watch.Device{Number: blkdev.Number{Major: 8}, Node: "/dev/sda", Limit: limit.None.With(limit.WBPS, limit.PerSecond(1e9)), Rates: &watch.Rates{RBPS: 1e6}}
		if i == 0 {
			d.Rates.WBPS = float64(n % 500) // what is kept is exact up to there
		}
		s.Groups = append(s.Groups, &watch.Group{Path: path, Target: "cgroup:" + path, Devices: []watch.Device{d}})
	}
	return s
}

// promised is the second that a level must go to when seconds were kept.
func promised(l history.Level, first, told int) int {
	if l.Step == time.Second {
		return max(told-9, first) // it is brought to the disk each 10 s
	}
	step := int(l.Step.Seconds())
	if end := (told - 1) / step * step; end >= first {
		return end
	}
	return 0 // no step was over
}

// recordUntilCut records seconds, cuts the power at a random moment, and mounts the disk again. It
// returns the last second that was kept before the cut.
func recordUntilCut(t *testing.T, disk *lab.TestDisk, first int) int {
	t.Helper()
	dir := filepath.Join(disk.Dir, "history")
	r, err := history.Record(dir, powerLevels())
	if err != nil {
		t.Fatal(err)
	}
	var told atomic.Int64
	ended := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		for n := first; ; n++ {
			if err := r.Add(second(n)); err != nil {
				ended <- err
				return
			}
			if told.Store(int64(n)); n == first {
				close(begun)
			}
		}
	}()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatal(err)
	}
	time.Sleep(rand.N(300 * time.Millisecond))
	at, err := os.Open(disk.Dir)
	if err != nil {
		t.Fatal(err)
	}
	kept := int(told.Load())
	err = unix.IoctlSetPointerInt(int(at.Fd()), shutdown, noLogFlush)
	if err := errors.Join(err, at.Close()); err != nil {
		t.Fatalf("cut the power of %s: %v", disk.FS, err)
	}
	if err := <-ended; !errors.Is(err, unix.EIO) {
		t.Fatalf("recording after the power cut: %v", err)
	}
	_ = r.Close() // it cannot end well
	if err := unix.Unmount(disk.Dir, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(disk.Node, disk.Dir, disk.FS, unix.MS_NOATIME, ""); err != nil {
		t.Fatalf("mount %s after a power cut: %v", disk.Node, err)
	}
	return kept
}

// lastOf is the last second that a level has. All that it has must be what was recorded.
func lastOf(t *testing.T, disk *lab.TestDisk, l history.Level) (last int) {
	t.Helper()
	name := fmt.Sprintf("%ds.weirhist", int(l.Step.Seconds()))
	text, err := os.ReadFile(filepath.Join(disk.Dir, "history", name))
	alone := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(alone, name), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := history.Open(alone)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := r.Series(t.Context(), "cgroup:/g00", powerStart.Add(time.Second), powerStart.AddDate(1, 0, 0))
	var nothing *history.NothingError
	if errors.As(err, &nothing) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Points {
		n := int(p.At.Sub(powerStart).Seconds())
		if n <= last || l.Step == time.Second && p.Device.Rates.WBPS != float64(n%500) {
			t.Fatalf("level %s has %v bytes/s at %d, after %d", l.Step, p.Device.Rates.WBPS, n, last)
		}
		last = n
	}
	return last
}
