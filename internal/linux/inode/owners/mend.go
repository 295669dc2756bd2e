package owners

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/weir-io/weir/internal/linux/inode"
)

const (
	// roundsMax bounds how often a page is written back. The kernel passes over rounds
	// that took less than an eighth of the running average (WB_FRN_TIME_CUT_DIV). That
	// is 16 bits wide and falls by an eighth a round, so 65 rounds of the shortest kind
	// bring the greatest average down to them, and 9 more are the majority it takes.
	roundsMax = 96
	// roundsAtOnce are done between two looks at the owner.
	roundsAtOnce = 12
	// settleMax bounds the wait for the kernel to switch the owner after the last round:
	// it does so in a work queue, after a grace period of RCU.
	settleMax = 5 * time.Second
	pollEvery = 20 * time.Millisecond
)

// Mend moves the ownership of a file's writeback to the memory cgroup of the calling process,
// and checks whether it has moved. The path is resolved as in OfPaths; it can be a File's
// Handle. Mend needs the right to write to the file, and takes as long as the file's dirty
// pages need to reach the disk under their present owner's limits; ctx bounds that. The error
// is a *Refused if moving could do harm, and an *Unmoved if it had no effect.
func (r *Reader) Mend(ctx context.Context, path string) (inode.Mended, error) {
	began := time.Now()
	if r.hierarchy == nil || !r.hierarchy.Has("io") || !r.hierarchy.Has("memory") {
		return inode.Mended{}, &inode.Refused{Path: path, Reason: "the kernel charges writeback to groups only if cgroup v2 has the io and memory controllers"}
	}
	files, err := r.ofPaths(ctx, []string{path})
	if err != nil {
		return inode.Mended{}, err
	}
	before := files[0]
	m := inode.Mended{Before: before.File, After: before.File}
	if before.ours() {
		return m, nil
	}
	f, err := r.openToMend(ctx, before)
	if err != nil {
		return m, err
	}
	defer f.Close()
	err = r.mend(ctx, cached{f, before.Beneath}, before, &m)
	m.Took = time.Since(began)
	return m, err
}

// ours reports whether the owner is the group of the process that asked.
func (f file) ours() bool { return f.Owner.State == inode.Owned && f.Owner.Memory.ID == f.caller }

func (r *Reader) mend(ctx context.Context, f cached, before file, m *inode.Mended) error {
	if err := f.letGo(ctx); err != nil {
		return err
	}
	w, err := findWindow(ctx, f)
	if err != nil {
		return err
	}
	defer w.Close()
	for m.Rounds < roundsMax {
		for range roundsAtOnce {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := w.round(); err != nil {
				return err
			}
			m.Rounds++
		}
		if done, err := r.moved(ctx, f.File, before, m); done || err != nil {
			return err
		}
	}
	return r.settle(ctx, f.File, before, m)
}

// settle waits for a switch that the kernel has been brought to.
func (r *Reader) settle(ctx context.Context, f *os.File, before file, m *inode.Mended) error {
	for deadline := time.Now().Add(settleMax); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
		if done, err := r.moved(ctx, f, before, m); done || err != nil {
			return err
		}
	}
	return &inode.Unmoved{Path: f.Name(), Owner: m.After.Owner, Rounds: m.Rounds}
}

// moved looks whether the owner is the caller's group now.
func (r *Reader) moved(ctx context.Context, f *os.File, before file, m *inode.Mended) (bool, error) {
	now, err := r.again(ctx, f, before)
	m.After = now.File
	return err == nil && now.ours(), err
}

// again looks at the owner of a file that is open, and whether anybody now uses it in a
// way that forbids to go on.
func (r *Reader) again(ctx context.Context, f *os.File, before file) (file, error) {
	all, err := r.openers(ctx, before.identity)
	if err != nil {
		return before, err
	}
	now, found := before, false
	for _, o := range all {
		if o.IsDirect() {
			return before, &inode.Refused{Path: before.Path,
				Reason: fmt.Sprintf("process %d has it open for direct I/O, which must not mix with dirty pages of the same file", o.PID)}
		}
		if o.PID == os.Getpid() && o.FD == int(f.Fd()) {
			now, found = o, true
		}
	}
	if !found {
		return before, &inode.Refused{Path: before.Path, Reason: "another file has replaced it meanwhile"}
	}
	now.Path, now.PID, now.FD = before.Path, 0, 0
	return now, nil
}
