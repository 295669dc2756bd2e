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

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/limit"
)

const (
	// lingerMin is what is too little to have a group stay for, in bytes.
	lingerMin = 1 << 20
	// lingerEnd is what one that has stayed need not wait for: the last pages of a
	// megabyte are as much bound as the first.
	lingerEnd = 64 << 10
)

// lingers reports whether a group has a limit on writes, and at least so many bytes in
// memory that it binds: on v2, where writeback is charged to groups. Without the group the
// kernel may let them through at once (7.2 does; 5.10, 6.1 and 6.12 do not).
func lingers(g cgroupfs.Group, least uint64) bool {
	if !bindsWriteback(g) {
		return false
	}
	m, there, err := g.Memory()
	return err == nil && there && m.Dirty >= least
}

// bindsWriteback reports whether a group has a limit that binds what is written back for it.
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
	// lingerName is what a keeper calls itself while it lingers.
	lingerName = "weir-linger"
	// lingerLook is how often it looks. The kernel begins with pages that have been dirty
	// for 30 s (dirty_expire_centisecs), and looks every 5 s itself.
	lingerLook = 250 * time.Millisecond
)

// callLinger gives this process the name of a keeper that lingers.
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

// linger returns when nobody else is in the caller's group, and it does not linger any
// more.
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

// How long a group takes to go: with keepers in it systemd has to notice; without, a
// task that exits, or another weir that looks at the same record.
const (
	evictMax   = 5 * time.Second
	vacateMax  = removeWait
	vacateLook = 5 * time.Millisecond
)

// vacate removes a group of weir's, if it is there and nothing is in it but what lingers:
// its name is wanted. Any other one it leaves.
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
		if err := sweep(h.State, h.FS, g.Path()); err != nil { // systemd removes its own
			return err
		}
	}
	return nil
}

// inside lists the lingering keepers in a group, and reports whether anybody else is in it
// or below it, but for one process.
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
