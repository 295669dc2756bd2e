package launch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

const (
	// lingerMin is how much data, in bytes, makes a group stay.
	lingerMin = 1 << 20
	// lingerEnd is how much data a staying group need not wait for: of a megabyte, the last
	// pages are held like the first.
	lingerEnd = 64 << 10
)

// lingers reports whether a group has a limit on writes, and at least this many bytes in memory
// that the limit applies to: on v2, where the kernel charges writeback to groups. Without the
// group the kernel may let them through at once (7.2 does; 5.10, 6.1 and 6.12 do not).
func lingers(g cgroupfs.Group, least uint64) bool {
	if !bindsWriteback(g) {
		return false
	}
	m, there, err := g.Memory()
	return err == nil && there && m.Dirty >= least
}

// bindsWriteback reports whether a group has a limit that applies to its writeback.
func bindsWriteback(g cgroupfs.Group) bool {
	if g.Hierarchy().Version != cgroupfs.V2 {
		return false
	}
	rules, err := g.Rules()
	return err == nil && slices.ContainsFunc(rules, func(r cgroupfs.Rule) bool {
		return r.Limit.WBPS != limit.Unlimited || r.Limit.WIOPS != limit.Unlimited
	})
}

const (
	// lingerName is the process name of a lingering keeper.
	lingerName = "weir-linger"
	// lingerLook is how often it checks. The kernel begins with pages that have been dirty for
	// 30 s (dirty_expire_centisecs), and its flusher wakes every 5 s.
	lingerLook = 250 * time.Millisecond
)

// callLinger gives this process the name of a lingering keeper.
func callLinger() error { return os.WriteFile("/proc/self/comm", []byte(lingerName), 0) }

// wait lingers for a time.
func wait(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	err := callLinger()
	time.Sleep(d)
	return err
}

// linger returns when no other process is in the caller's group, and the group has no data in
// memory any more.
func linger() error {
	if err := callLinger(); err != nil {
		return err
	}
	fs, err := cgroupfs.Open("/")
	if err != nil {
		return err
	}
	defer fs.Close()
	g, err := fs.OfProcess(fs.Unified(), 0)
	if err != nil {
		return err
	}
	for {
		_, others := inside(g, os.Getpid())
		if !others && !lingers(g, lingerEnd) {
			return nil
		}
		time.Sleep(lingerLook)
	}
}

// How long a group takes to vanish: with keepers in it systemd has to notice; without, a task
// is exiting, or another weir is reading the same record.
const (
	evictMax   = 5 * time.Second
	vacateMax  = removeWait
	vacateLook = 5 * time.Millisecond
)

// vacate removes a weir group whose name is wanted, if it exists and contains only lingering
// keepers. It leaves any other group.
func (h Host) vacate(ctx context.Context, g cgroupfs.Group) error {
	most := vacateMax
	for began := time.Now(); time.Since(began) < most; time.Sleep(vacateLook) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if there, err := g.Exists(); err != nil || !there {
			return err
		}
		keepers, others := inside(g, 0)
		if others {
			return nil
		}
		for _, pid := range keepers {
			_ = unix.Kill(pid, unix.SIGTERM) // it may have ended
			most = evictMax
		}
		if err := sweep(h.State, h.FS, g.Path()); err != nil && !state.IsDamaged(err) { // systemd removes its own
			return err
		}
	}
	return nil
}

// inside lists the lingering keepers in a group, and reports whether any other process is in it
// or below it, except one process.
func inside(g cgroupfs.Group, but int) (keepers []int, others bool) {
	err := g.Walk(func(below cgroupfs.Group) error {
		pids, err := below.Processes()
		for _, pid := range pids {
			if pid == but {
				continue
			}
			name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
			switch {
			case cgroupfs.IsGone(err): // it has just ended
			case err == nil && strings.TrimSpace(string(name)) == lingerName:
				keepers = append(keepers, pid)
			default:
				others = true
			}
		}
		return err
	})
	return keepers, others || err != nil
}
