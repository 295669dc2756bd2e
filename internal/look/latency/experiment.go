package latency

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/trace"
)

// WriterArg makes weir a writer, which is started with a copy's arguments and has its log
// as descriptor 3.
const WriterArg = "__copy"

// Block is the bytes of a write.
const Block = 64 << 10

// stallMost is how long no write may end before the writer counts as stuck: a low limit
// on writes beside little memory can hang it for good.
const stallMost = 2 * time.Minute

// An Experiment describes what to run.
type Experiment struct {
	Host    launch.Host
	Helpers helper.Starter // trace the writers
	Dir     string
	Size    int64  // of the file, bytes
	Memory  uint64 // the limit, bytes
	Direct  bool   // a third run, with O_DIRECT, under the same limit
	Changes []hold.Change
	Version cgroupfs.Version
	Writer  []string // the command of a writer, without the copy's arguments
	Stderr  *os.File
	// Progress is told what is running, and how far it is, from 0 to 1.
	Progress func(what string, part float64)
}

// A Run is one copy.
type Run struct {
	Direct bool
	Memory uint64 // bytes; 0: no limit
	Writes []load.Timing
	// Stopped says why the copy is not whole; empty: it is.
	Stopped string

	Splits  []Moment      // where the time of writes went, added up from the beginning
	Trace   *trace.Report // nil: there is none, and NoTrace says why
	NoTrace string
}

// Name is for people.
func (r Run) Name() string {
	switch {
	case r.Memory == 0:
		return "no memory limit"
	case r.Direct:
		return "direct, memory " + limit.FormatSize(r.Memory)
	}
	return "memory " + limit.FormatSize(r.Memory)
}

// runs lists the runs to do.
func (e Experiment) runs() []Run {
	list := []Run{{}, {Memory: e.Memory}}
	if e.Direct {
		list = append(list, Run{Memory: e.Memory, Direct: true})
	}
	return list
}

// Options returns the options of a run's group.
func (e Experiment) Options(memory uint64) launch.Options {
	return launch.Options{Command: "trace --latency", Version: e.Version, MemoryMax: memory, Changes: e.Changes}
}

// Run does all runs. Nothing is left of them, on an error neither.
func (e Experiment) Run(ctx context.Context) ([]Run, error) {
	list := e.runs()
	for i := range list {
		if err := e.measure(ctx, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (e Experiment) measure(ctx context.Context, r *Run) (err error) {
	room, err := e.Host.Prepare(ctx, e.Options(r.Memory))
	if err != nil {
		return err
	}
	defer func() {
		left, closing := room.Close()
		if left != launch.LeftNothing {
			closing = errors.Join(closing, launch.SweepLater())
		}
		err = errors.Join(err, closing)
	}()
	tracer, err := trace.Open(trace.Options{Group: &room.IO, Kinds: []trace.Kind{trace.Write}}, e.Helpers)
	switch {
	case fault.ClassOf(err) == fault.NotPossible:
		r.NoTrace, tracer = err.Error(), nil
	case err != nil:
		return err
	}
	err = e.write(ctx, r, room, tracer)
	if tracer != nil {
		err = errors.Join(err, tracer.Close())
	}
	return err
}

// write has a writer do the copy in the room, and follows it.
func (e Experiment) write(ctx context.Context, r *Run, room *launch.Room, tracer *trace.Tracer) (err error) {
	c := load.Copy{Dir: e.Dir, Block: Block, Size: e.Size, Direct: r.Direct}
	times, err := load.NewLog(c.Writes())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, times.Close()) }()
	watch := watchSplits(tracer)
	child, err := e.Host.Spawn(room, launch.Command{Args: append(append([]string{}, e.Writer...), c.Args()...), Stderr: e.Stderr}, times.File())
	if err != nil {
		return errors.Join(err, watch.end(r))
	}
	// Where the group's memory runs out, the writer is the one to go, and not a keeper.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", child.PID), []byte("1000"), 0)
	r.Stopped = e.follow(ctx, r.Name(), child, times, c.Writes())
	err = watch.end(r)
	// Dirty data must not take minutes to be written at the limit before the writer can end.
	err = errors.Join(err, e.lift(ctx, room))
	status, waiting := child.Wait()
	r.Writes = times.Timings()
	switch {
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), err)
	case waiting != nil || r.Stopped != "":
		return errors.Join(err, waiting)
	case status == 128+int(unix.SIGKILL):
		r.Stopped = "the writer was OOM-killed: the group ran out of memory"
	case status != 0:
		return errors.Join(err, fmt.Errorf("measure the latency of writes: the writer ended with status %d", status))
	}
	return err
}

// lift takes the limits of the group away again.
func (e Experiment) lift(ctx context.Context, room *launch.Room) error {
	if len(e.Changes) == 0 {
		return nil
	}
	var lifted []hold.Change
	for _, c := range e.Changes {
		lifted = append(lifted, hold.Change{Device: c.Device, Limit: limit.None})
	}
	return e.Host.Holder.Apply(context.WithoutCancel(ctx), hold.Plan{Group: room.IO, Changes: lifted})
}

// follow waits until all writes are done, the writer has ended, or its time is over; then
// it is killed. It returns why it was stopped.
func (e Experiment) follow(ctx context.Context, what string, child *launch.Child, times *load.Log, writes int) string {
	const every = 100 * time.Millisecond
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	was, moved := 0, time.Now()
	for {
		n := times.Len()
		e.Progress(what, float64(n)/float64(writes))
		if n == writes {
			return ""
		}
		if n != was {
			was, moved = n, time.Now()
		}
		if time.Since(moved) > stallMost {
			child.Kill()
			return fmt.Sprintf("stopped: no write ended in %s", stallMost)
		}
		select {
		case <-child.Ended():
			return ""
		case <-ctx.Done():
			child.Kill()
			return ""
		case <-ticker.C:
		}
	}
}
