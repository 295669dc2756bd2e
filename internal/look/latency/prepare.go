package latency

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/place"
)

const (
	// MemoryMin is what the writer, a weir, needs beside its page cache; bytes.
	MemoryMin = 32 << 20
	// SizeMost bounds how much a run stores: 16 bytes for each write.
	SizeMost = 256 << 30
	// kept is left free of the file system.
	kept = 64 << 20
)

// A Request says what to measure.
type Request struct {
	Dir     string
	Size    uint64        // that each run writes: Block to SizeMost, bytes
	Memory  uint64        // the limit: at least MemoryMin, bytes
	Direct  bool          // a third run, with direct I/O, under the same limit
	Limits  []limit.Asked // of all runs, on the device of Dir
	Version cgroupfs.Version
}

// A Prepared is an experiment that can begin: nothing has been changed for it yet.
type Prepared struct {
	Experiment
	Group    cgroupfs.Group // in which the groups of runs will be
	Decision place.Decision // what will hold
	report   Report
}

// Prepare finds the device of a request, and decides what holds there. If Dir is no directory, the
// error is a *load.NoDirError.
func Prepare(ctx context.Context, h *host.Host, r Request) (Prepared, error) {
	p := Prepared{report: Report{Kernel: kernel.Running(), Dir: r.Dir, Size: r.Size, Memory: r.Memory}}
	chain, err := find(ctx, h, r)
	if err != nil {
		return p, err
	}
	for i := range r.Limits {
		r.Limits[i].On = r.Dir
	}
	places, _, err := place.Place(ctx, h.Devices(), r.Limits, nil) // each has a place: none is skipped
	if err != nil {
		return p, err
	}
	p.Experiment = Experiment{Host: h.Launch(), Helpers: h.Helpers, Dir: r.Dir, Size: int64(r.Size), Memory: r.Memory, Direct: r.Direct, Changes: place.Changes(places), Version: r.Version}
	if p.Group, _, err = p.Host.Plan(p.Options(r.Memory)); err != nil { // is there a controller of memory?
		return p, err
	}
	if p.Decision, err = h.Deciding().Decide(p.Group, true, places, limit.HoldKernel); err != nil {
		return p, err
	}
	p.report.Chain, p.report.Version, p.report.Places = chain, p.Group.Hierarchy().Version, places
	return p, nil
}

// Measure does all runs, and nothing is left of them.
func (p Prepared) Measure(ctx context.Context) (Report, error) {
	var err error
	p.report.Runs, err = p.Run(ctx)
	return p.report, err
}

// find finds the device of the directory, and refuses one that a file does not fit in.
func find(ctx context.Context, h *host.Host, r Request) (chain blkdev.Chain, err error) {
	if err := load.CheckDir(r.Dir); err != nil {
		return chain, err
	}
	if chain, err = h.Devices().Resolve(ctx, r.Dir); err != nil {
		return chain, err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(r.Dir, &st); err != nil {
		return chain, &os.PathError{Op: "read free space of", Path: r.Dir, Err: err}
	}
	if st.Flags&unix.ST_RDONLY != 0 {
		return chain, &fault.Unsupported{Feature: "write into " + r.Dir, Reason: "it is mounted read-only", Remedy: "name another directory"}
	}
	return chain, checkRoom(r.Dir, r.Size, st.Bavail*uint64(st.Bsize))
}

// checkRoom refuses a file that does not fit. It says which size would, in whole GiB or else MiB.
func checkRoom(dir string, size, free uint64) error {
	if free >= size+kept {
		return nil
	}
	unit := uint64(1 << 20)
	fits := free - min(free, kept)
	if fits >= 1<<30 {
		unit = 1 << 30
	}
	err := &fault.Unsupported{Feature: "write " + limit.FormatSize(size) + " into " + dir,
		Reason: fmt.Sprintf("the file system has %s free, and weir leaves %s of that free", limit.FormatMeasured(float64(free)), limit.FormatSize(kept))}
	if fits /= unit; fits == 0 {
		err.Remedy = "name another directory"
		return err
	}
	return fault.With(err, fault.Remedy{Do: fault.WriteLess, Target: limit.FormatSize(fits * unit)})
}
