package prove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/load"
)

// A Prover measures rows.
type Prover struct {
	Devices blkdev.FS
	// Load is the program that does a load's job, with the arguments before the job's.
	Load []string
	// Stderr is where a load's own errors go.
	Stderr *os.File
	// Progress is told what is being measured, and how far it is, from 0 to 1.
	Progress func(what string, part float64)
}

// grace is how much longer than its time a load may take: the last request may have to
// wait for its turn, and a new process for a processor.
const grace = 6 * time.Second

// drainMost bounds how long weir waits for a load's process to end, which waits itself
// for what of its file is on its way to the disk.
const drainMost = 20 * time.Second

// Run measures the tests one after the other, because they share the limit, and hands over each
// row when it is done. It makes the data to read first, once for all tests.
func (p Prover) Run(ctx context.Context, place Place, tests []Test, row func(Row) error) error {
	file, err := p.prepare(ctx, place, tests)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}
	for _, t := range tests {
		r, err := p.measure(ctx, place, t, file)
		if err != nil {
			return err
		}
		if err := row(r); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the file that the reads among the tests read.
func (p Prover) prepare(ctx context.Context, place Place, tests []Test) (*os.File, error) {
	size := int64(0)
	for _, t := range tests {
		if t.Key.IsRead() {
			size = max(size, t.Size)
		}
	}
	if size == 0 {
		return nil, nil
	}
	p.Progress("writing the data to read", 0)
	return load.Prepare(ctx, place.folder(), size)
}

// A run is what one load did and what was counted meanwhile.
type run struct {
	test    Test
	group   cgroupfs.Group // whose limit it is
	began   time.Duration  // when the load was started
	ended   time.Duration
	writer  Reading
	result  load.Result
	samples *Samples
	// baseline is per second what the device did before the load, in bytes and in
	// operations.
	baseBytes, baseOps float64
	failed             error
	hung               bool
	signal             int
	oomKills           uint64 // in the group, meanwhile
	asked              Series // of an observed target: what its processes asked to read, in bytes
	observed           bool   // no load was made: it is the target's own I/O
}

// measure does one test, in a group that it limits first if that is weir's own.
func (p Prover) measure(ctx context.Context, place Place, t Test, file *os.File) (row Row, err error) {
	room, lift, done, err := place.enter(ctx, true)
	if err != nil {
		return row, err
	}
	group := place.Target
	if !place.Stays() {
		group = room.IO
	}
	r, child, err := p.observed(ctx, place, sampler{group: group, device: place.Device.Number, devices: p.Devices, read: t.Key.IsRead()}, room, t, file)
	err = errors.Join(err, lift())
	if child != nil {
		p.await(child, t)
	}
	if err = errors.Join(err, done()); err != nil {
		return row, err
	}
	return rowOf(place, r), ctx.Err()
}

// await waits for the end of a load that has said what it had to say.
func (p Prover) await(child *launch.Child, t Test) {
	began := time.Now()
	for {
		select {
		case <-child.Ended():
			return
		case <-time.After(every):
			passed := time.Since(began)
			if passed > drainMost {
				return // it is killed, and ends when the disk has answered
			}
			p.Progress(t.String()+": waiting until the data is on the disk", passed.Seconds()/drainMost.Seconds())
		}
	}
}

// observed runs a load and samples while it runs. The child may still be ending when
// observed returns.
func (p Prover) observed(ctx context.Context, place Place, s sampler, room *launch.Room, t Test, file *os.File) (*run, *launch.Child, error) {
	r := &run{test: t, group: s.group}
	var err error
	if s.others, err = siblingsOf(s.group); err != nil {
		return r, nil, err
	}
	if place.Sole {
		s.others = nil
	}
	if r.baseBytes, r.baseOps, err = p.settle(ctx, s, t); err != nil {
		return r, nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return r, nil, err
	}
	defer out.Close()
	sampling, stopSampling := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSampling()
	sampled := make(chan error, 1)
	go func() {
		var err error
		r.samples, err = s.run(sampling)
		sampled <- err
	}()
	oomBefore := oomKills(s.group)
	r.began = now()
	child, err := p.spawn(place, room, t, file, in)
	if err = errors.Join(err, in.Close()); err != nil {
		stopSampling()
		return r, nil, errors.Join(err, <-sampled)
	}
	if t.Delayed() {
		a := asking{dir: place.folder(), size: t.Size, chunk: chunkFor(t.Rate), most: askMost(place, t), overlay: isOverlay(place.folder())}
		if place.Rooted {
			a.as = s.group.Hierarchy().Root()
		}
		defer a.start(child.PID)()
	}
	p.follow(ctx, child, out, r)
	r.ended = now()
	r.oomKills = max(oomKills(s.group), oomBefore) - oomBefore // a group that is gone has none
	stopSampling()
	return r, child, <-sampled
}

// askMost bounds how much is on its way to the disk at a time if the limit cannot be removed:
// four times what the limit lets through meanwhile.
func askMost(place Place, t Test) int64 {
	if !place.Drains() {
		return 0
	}
	return max(mega, int64(float64(t.Rate)*askEvery.Seconds()*4))
}

func (p Prover) spawn(place Place, room *launch.Room, t Test, file *os.File, out *os.File) (*launch.Child, error) {
	job := load.Job{Path: t.Path, Read: t.Key.IsRead(), Random: t.Random, Alone: t.Key.IsRead(), Depth: t.Depth, Block: t.Block, Size: t.Size, Pace: t.Pace, Warm: t.Warm, For: t.For}
	var files []*os.File
	switch {
	case job.Read:
		job.File, files = "fd:3", []*os.File{file}
	case place.Folder != nil:
		job.Dir, files = "fd:3", []*os.File{place.Folder}
	default:
		job.Dir = place.Dir
	}
	args := append(append([]string{}, p.Load...), job.Args()...)
	child, err := place.Host.Spawn(room, launch.Command{Args: args, Stdout: out, Stderr: p.Stderr}, files...)
	if err != nil {
		return nil, err
	}
	// Where the group's memory runs out, the load is the first to go. What would take the
	// target with it, Spare leaves out.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", child.PID), []byte("1000"), 0)
	return child, nil
}

// follow reads a load's ticks until its result is there, the load has ended, or its time is
// over. Then, or when the context ends, it kills the load.
func (p Prover) follow(ctx context.Context, child *launch.Child, out *os.File, r *run) {
	r.writer.add(r.began, 0, 0)
	type end struct {
		result load.Result
		err    error
	}
	ticks := make(chan load.Tick, 16)
	ends := make(chan end, 1)
	go func() {
		result, err := load.Decode(out, func(t load.Tick) { ticks <- t })
		close(ticks)
		ends <- end{result, err}
	}()
	total := r.test.Warm + r.test.For
	over := time.NewTimer(total + grace)
	defer over.Stop()
	killed := false
	var overdue time.Duration // when it was killed for that
	kill := func() {
		killed = true
		child.Kill()
		_ = out.SetReadDeadline(time.Now().Add(time.Second)) // it may hang in the kernel
	}
	for done := ctx.Done(); ticks != nil; {
		select {
		case t, more := <-ticks:
			if !more {
				ticks = nil
				break
			}
			r.writer.add(time.Duration(t.At), uint64(t.Bytes), uint64(t.Ops))
			p.Progress(r.test.String(), min(1, float64(now()-r.began)/float64(total)))
		case <-over.C:
			r.hung = true
			overdue = now()
			kill()
		case <-done:
			done = nil
			kill()
		}
	}
	e := <-ends
	r.result = e.result
	if r.hung { // what it has done until then can be judged all the same
		r.result = load.Result{Began: int64(r.began + r.test.Warm), Ended: int64(overdue)}
	}
	if e.err == nil || killed {
		return
	}
	r.failed = e.err
	<-child.Ended() // its output is at an end
	if status, err := child.Wait(); err == nil && status > 128 {
		r.signal = status - 128
	} else if errors.Is(e.err, io.ErrUnexpectedEOF) || status != 0 {
		r.failed = fmt.Errorf("the load ended with status %d and no result", status)
	}
}

const (
	settleMost = time.Second
	quiet      = 0.03 // of the limit: small enough to be passed over
)

// settle waits until the device is quiet, at most a second. It returns what the device still
// does then: I/O of others.
func (p Prover) settle(ctx context.Context, s sampler, t Test) (bytes, ops float64, err error) {
	for began := now(); ; {
		var samples *Samples
		short, cancel := context.WithTimeout(ctx, 2*every)
		samples, err = s.run(short)
		cancel()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, 0, err
		}
		d := samples.Device
		from, to := d.Bytes[0].At, d.Bytes[len(d.Bytes)-1].At
		seconds := max((to - from).Seconds(), 1e-3)
		bytes, ops = d.Bytes.Between(from, to)/seconds, d.Ops.Between(from, to)/seconds
		busy := bytes
		if t.Key.IsOps() {
			busy = ops
		}
		if busy < quiet*float64(t.Rate) || now()-began > settleMost {
			return bytes, ops, nil
		}
	}
}
