package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/act/scratch"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/place"
)

const (
	warm     = 300 * time.Millisecond  // the throttle's first slices, which start with a burst
	warmBack = 1500 * time.Millisecond // and writeback's beginning, in large requests
	fileSize = 192 << 20               // bounds what a buffered writer can leave dirty
	block    = 32 << 10
)

// A Row is one measurement.
type Row struct {
	Path       load.Path  `json:"path"`
	Limit      limit.Rate `json:"limit"`            // unlimited, or what was asked
	Hold       limit.Hold `json:"hold"`             // the kernel's rule alone, or weir's pacer with it
	Writer     float64    `json:"writer_bytes_sec"` // what the writing process saw
	Device     float64    `json:"device_bytes_sec"` // what the disk did
	Held       bool       `json:"held"`             // the disk did no more than the limit lets through, and at least half of the limit
	CannotTell bool       `json:"cannot_tell"`      // the disk did less than half of the limit: was it the limit, or the disk?
	Why        string     `json:"why,omitempty"`    // why it was not held, or cannot be told
}

// toldFrom is the part of the limit that the disk must have done for a row to say
// anything: a disk that is slower than the limit holds it without the limit's help.
const toldFrom = 0.5

// What the kernel's throttle may let through beyond rate × time, and hold all the same:
// a slice at the start, and one request that is larger than what a slice has left.
const (
	slice      = 100 * time.Millisecond
	requestMax = 2 << 20 // ext4's writeback, most of the time; of 8 MiB ones see pace
)

// bound is the most that a disk may do per second of a window under a limit.
func bound(bytesPerSec uint64, window time.Duration) float64 {
	return (float64(bytesPerSec)*(window+slice).Seconds() + requestMax) / window.Seconds()
}

// Options say what to show.
type Options struct {
	Limit  limit.Rate
	Dir    string        // for the file of the scratch disk
	For    time.Duration // of each measurement
	Stderr *os.File      // for what the writer says
	// Progress is told what is being measured, and how far it is, from 0 to 1.
	Progress func(what string, part float64)
}

// diskBytes is the size of the demo's disk, a sparse file. It never contains that much at once.
const diskBytes = 512 << 20

// A Demo is one run.
type Demo struct {
	Options
	Disk *scratch.Disk
	host *host.Host
	how  launch.Host
}

// Prepare makes the scratch disk. The process must be in a mount namespace of its own
// (scratch.Inside).
func Prepare(ctx context.Context, h *host.Host, o Options) (*Demo, error) {
	disk, err := scratch.New(ctx, o.Dir, diskBytes)
	if err != nil {
		return nil, err
	}
	return &Demo{Options: o, Disk: disk, host: h, how: h.Launch()}, nil
}

// Run measures the rows, and gives up the disk.
func (d *Demo) Run(ctx context.Context) (rows []Row, err error) {
	defer func() { err = errors.Join(err, d.Disk.Close()) }()
	paced, err := d.paced(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range d.rows(paced) {
		r, err := d.measure(ctx, one)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// paced reports whether weir run has its pacer hold buffered writes to the disk.
func (d *Demo) paced(ctx context.Context) (bool, error) {
	device, err := d.host.Devices().Device(ctx, d.Disk.Device)
	if err != nil {
		return false, err
	}
	group, _, err := d.how.Plan(launch.Options{Command: "demo"})
	if err != nil {
		return false, err
	}
	decided, err := d.host.Deciding().Decide(group, true, []place.Placed{{Device: device, Limit: limit.Limit{WBPS: d.Limit}}}, limit.HoldAuto)
	return decided.Paced != nil, err
}

// rows are the measurements: without and with the limit and, where weir run has its pacer hold
// buffered writes, with the pacer too.
func (d *Demo) rows(paced bool) []Row {
	rows := []Row{
		{Path: load.Direct, Limit: limit.Unlimited, Hold: limit.HoldKernel}, {Path: load.Buffered, Limit: limit.Unlimited, Hold: limit.HoldKernel},
		{Path: load.Direct, Limit: d.Limit, Hold: limit.HoldKernel}, {Path: load.Buffered, Limit: d.Limit, Hold: limit.HoldKernel},
	}
	if paced {
		rows = append(rows, Row{Path: load.Buffered, Limit: d.Limit, Hold: limit.HoldPacer})
	}
	return rows
}

// measure does what a row says, and returns it with what was seen.
func (d *Demo) measure(ctx context.Context, r Row) (_ Row, err error) {
	path, asked := r.Path, r.Limit
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	file := filepath.Join(d.Disk.Dir, "load")
	o := launch.Options{Command: "demo", Changes: []hold.Change{{Device: d.Disk.Device, Limit: limit.Limit{WBPS: asked}}}}
	paced := r.Hold == limit.HoldPacer
	if paced {
		o.Then = func(room *launch.Room) error {
			_, err := d.how.Pace(room)
			return err
		}
	}
	room, err := d.how.Prepare(ctx, o)
	if err != nil {
		return r, err
	}
	lift := func() error { return d.lift(ctx, room, paced) }
	defer func() { err = errors.Join(err, lift(), d.leave(room, file)) }()
	job := load.Job{Path: path, File: file, Block: block, Size: fileSize, Warm: warmUp(path), For: d.For}
	out, in, err := os.Pipe()
	if err != nil {
		return r, err
	}
	defer out.Close()
	counted := make(chan error, 1)
	var writer load.Result
	go func() {
		var err error
		writer, err = load.Decode(out, nil)
		counted <- err
	}()
	watched := make(chan error, 1)
	var device pace
	go func() {
		var err error
		device, err = d.watchDevice(ctx, path, fmt.Sprintf("%s writes, limit %s", path, asked.Format(limit.WBPS)))
		watched <- err
	}()
	err = errors.Join(d.write(ctx, room, job, in, lift), in.Close())
	counting := <-counted
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // it ended the load
		}
		cancel()
		return r, errors.Join(err, notCanceled(<-watched))
	}
	if err := errors.Join(<-watched, counting); err != nil {
		return r, err
	}
	r.Writer, r.Device = writer.BytesPerSec(), device.bytesPerSec
	return judge(room, r, device.over), nil
}

// write runs a load in a room, which ends with the context.
func (d *Demo) write(ctx context.Context, room *launch.Room, job load.Job, results *os.File, lift func() error) error {
	writing, err := d.how.Spawn(room, launch.Command{
		Args:   append([]string{"/proc/self/exe", load.Arg}, job.Args()...),
		Stdout: results, Stderr: d.Stderr,
	})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = lift() // it may be waiting for the disk
		writing.Kill()
	})
	defer stop()
	status, err := writing.Wait()
	if err == nil && status != 0 {
		err = fmt.Errorf("the load ended with status %d", status)
	}
	return err
}

// lift removes a room's limit: what is dirty must not take a minute to drain.
func (d *Demo) lift(ctx context.Context, room *launch.Room, paced bool) error {
	if paced {
		if err := d.how.Unpace(room); err != nil {
			return err
		}
	}
	lifted := hold.Plan{Group: room.IO, Changes: []hold.Change{{Device: d.Disk.Device, Limit: limit.Limit{WBPS: limit.Unlimited}}}}
	return d.how.Holder.Apply(context.WithoutCancel(ctx), lifted)
}

// leave removes the load's file, and the room.
func (d *Demo) leave(room *launch.Room, file string) error {
	err := os.Remove(file)
	if errors.Is(err, fs.ErrNotExist) { // the load came to nothing
		err = nil
	}
	_, closing := room.Close()
	return errors.Join(err, closing)
}

// notCanceled drops the error of what was told to stop.
func notCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// judge compares what the disk did within a time with the row's limit.
func judge(room *launch.Room, r Row, within time.Duration) Row {
	asked, limited := r.Limit.Number()
	if !limited {
		return r
	}
	if r.Device < toldFrom*float64(asked) {
		r.CannotTell, r.Why = true, "the disk did only "+limit.FormatMeasured(r.Device)+"/s in that time"
		return r
	}
	if r.Held = r.Device <= bound(asked, within); r.Held {
		return r
	}
	if r.Path == load.Buffered && r.Hold == limit.HoldKernel {
		r.Why = place.ControllerOf(room.IO, kernel.Release{}).Writes(&blkdev.Mount{FSType: "ext4"}).Why
	}
	if r.Why == "" {
		r.Why = fmt.Sprintf("the disk did %.2f of the limit", r.Device/float64(asked))
	}
	return r
}

// watchDevice measures what the disk takes, after the warm-up.
func (d *Demo) watchDevice(ctx context.Context, path load.Path, what string) (pace, error) {
	if path == load.Buffered {
		stop, err := d.writeBack()
		if err != nil {
			return pace{}, err
		}
		defer stop()
	}
	if err := d.wait(ctx, warmUp(path), func(float64) {}); err != nil {
		return pace{}, err
	}
	var all samples
	began := time.Now()
	devices := blkdev.New("/")
	var failed error
	look := func(part float64) {
		c, err := devices.Counters(d.Disk.Device)
		failed = errors.Join(failed, err)
		all = append(all, sample{time.Since(began), c.WrittenBytes})
		if len(all)%5 == 1 || part == 1 {
			d.Progress(what, part)
		}
	}
	if err := d.wait(ctx, d.For, look); err != nil {
		return pace{}, err
	}
	return all.pace(), failed
}

func warmUp(path load.Path) time.Duration {
	if path == load.Buffered {
		return warmBack
	}
	return warm
}

// syncEvery is rare enough for the journal's own commits not to count.
const syncEvery = 250 * time.Millisecond

// writeBack asks for writeback again and again until stop is called, because the kernel by
// itself begins only after five seconds or more. The kernel does the writeback in both cases,
// and charges it to the right group.
func (d *Demo) writeBack() (stop func(), err error) {
	dir, err := unix.Open(d.Disk.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.Disk.Dir, err)
	}
	stopped := make(chan struct{})
	// syncfs returns when everything is written, under a limit only when the limit has been
	// removed. Nobody waits for it, and it ends with the demo.
	go func() {
		defer unix.Close(dir)
		for {
			select {
			case <-stopped:
				return
			case <-time.After(syncEvery):
				_ = unix.Syncfs(dir)
			}
		}
	}()
	return func() { close(stopped) }, nil
}

func (d *Demo) wait(ctx context.Context, total time.Duration, tick func(part float64)) error {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for began := time.Now(); ; {
		passed := time.Since(began)
		tick(min(1, passed.Seconds()/total.Seconds()))
		if passed >= total {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(total - passed):
		case <-ticker.C:
		}
	}
}
