package submitters

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// entriesMax bounds how many groups are noted. Later ones are not.
const entriesMax = 1024

// Watch notes groups until it is closed.
type Watch struct {
	groups  *ebpf.Map // by the inode of a group's folder in cgroup2, which is also its number
	program *ebpf.Program
	entry   link.Link
}

// Start begins to watch, which takes root.
func Start() (*Watch, error) {
	w := &Watch{}
	if err := w.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("watch submitters: %w", err), w.Close())
	}
	return w, nil
}

func (w *Watch) start() (err error) {
	if err := rlimit.RemoveMemlock(); err != nil { // kernels before 5.11 count maps as locked memory
		return err
	}
	w.groups, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "groups", Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: entriesMax,
	})
	if err != nil {
		return err
	}
	w.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "submitters", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry, AttachTo: "submit_bio",
		License: "GPL", Instructions: note(w.groups.FD()),
	})
	if err != nil {
		return err
	}
	w.entry, err = link.AttachTracing(link.TracingOptions{Program: w.program})
	return err
}

// note is groups[current cgroup] = 1.
func note(groups int) asm.Instructions {
	const key, value = -8, -16
	return asm.Instructions{
		asm.FnGetCurrentCgroupId.Call(),
		asm.StoreMem(asm.R10, key, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreMem(asm.R10, value, asm.R1, asm.DWord),
		asm.LoadMapPtr(asm.R1, groups),
		asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, key),
		asm.Mov.Reg(asm.R3, asm.R10), asm.Add.Imm(asm.R3, value),
		asm.Mov.Imm(asm.R4, int32(ebpf.UpdateAny)),
		asm.FnMapUpdateElem.Call(),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	}
}

// Groups are the numbers of the groups that submitted anything so far: the inodes
// of their folders in cgroup2. A process that is in its root, or on a host without
// it, is in group 1.
func (w *Watch) Groups() ([]uint64, error) {
	var all []uint64
	var group, one uint64
	entries := w.groups.Iterate()
	for entries.Next(&group, &one) {
		all = append(all, group)
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read submitters: %w", err)
	}
	return all, nil
}

// Close ends the watch.
func (w *Watch) Close() error {
	var errs []error
	if w.entry != nil {
		errs = append(errs, w.entry.Close())
	}
	errs = append(errs, w.program.Close(), w.groups.Close()) // nothing to do when nil
	return errors.Join(errs...)
}
