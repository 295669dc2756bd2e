package trace

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/targets"
)

// A Request says what a session traces.
type Request struct {
	Target *targets.Target // nil: the whole host
	Kinds  []Kind
	Slower time.Duration // each operation that takes at least this long is listed; 0: none
	Files  bool          // sums by file
}

// options are what a Tracer is told of a request.
func (r Request) options() Options {
	o := Options{Kinds: r.Kinds, Slower: r.Slower, Files: r.Files}
	if r.Target == nil {
		return o
	}
	if o.PID = r.Target.PID; o.PID == 0 {
		o.Group = &r.Target.Group
	}
	return o
}

// A Traced is what a session saw.
type Traced struct {
	Target string // as it was named, with its kind; empty: the whole host
	Kernel string // its release
	Report
	// SlowCount is how many operations took longer than the threshold: of them the slowest
	// are listed.
	SlowCount uint64
	// Snapshot has the histograms of the whole session.
	Snapshot Snapshot
	// NoLimits says why the evidence lacks limits of the target; nil: it has them all.
	NoLimits error
}

// A Session is a running trace, with all that is read during it. End or Close ends it.
type Session struct {
	host    *host.Host
	request Request
	tracer  *Tracer
	beside  *Witness
}

// Start attaches to the kernel. If tracing is not available, the error is a *bpf.Unavailable.
func Start(h *host.Host, r Request) (*Session, error) {
	tracer, err := Open(r.options(), h.Helpers)
	if err != nil {
		return nil, err
	}
	return &Session{host: h, request: r, tracer: tracer, beside: Watch(h.FS, r.Target)}, nil
}

// looksEvery is how often the paths of new files are looked for: a process that ends
// sooner leaves only their names.
const looksEvery = 250 * time.Millisecond

// Run calls wait, and looks for the paths of files until wait returns.
func (s *Session) Run(ctx context.Context, wait func(context.Context) error) error {
	looking, stop := context.WithCancel(ctx)
	looked := make(chan error, 1)
	go func() { looked <- s.look(looking) }()
	err := wait(ctx)
	stop()
	return errors.Join(err, <-looked)
}

// look looks for the paths of files while there are processes that have them open.
func (s *Session) look(ctx context.Context) error {
	for s.request.Files {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(looksEvery):
			if err := s.tracer.LookForFiles(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Wait returns when the session has run for so long, or the context ends, which is no error.
func (s *Session) Wait(ctx context.Context, window time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(window - time.Since(s.tracer.Began)):
	}
	return nil
}

// A Frame is what a live view shows at one moment.
type Frame struct {
	Whole  Report // from the beginning on
	Last   Report // since the frame before
	Passed time.Duration
}

// Frames returns a function that makes the next frame.
func (s *Session) Frames() (func() (Frame, error), error) {
	before, err := s.tracer.Snapshot()
	if err != nil {
		return nil, err
	}
	return func() (Frame, error) {
		now, err := s.tracer.Snapshot()
		if err != nil {
			return Frame{}, err
		}
		f := Frame{Whole: now.Report(&Snapshot{}, s.request.Kinds), Last: now.Report(&before, s.request.Kinds), Passed: now.After}
		before = now
		return f, nil
	}, nil
}

// End reads what there is, and ends the session. The context is for what is read beside the
// trace: the devices of limits.
func (s *Session) End(ctx context.Context) (Traced, error) {
	t, err := s.read()
	if err = errors.Join(err, s.Close()); err != nil {
		return t, err
	}
	t.NoLimits = t.Evidence.addLimits(ctx, s.host, s.request.Target)
	t.Advice = t.Advise()
	return t, nil
}

func (s *Session) read() (t Traced, err error) {
	t.Kernel = kernel.Running()
	if s.request.Target != nil {
		t.Target = s.request.Target.String()
	}
	if t.Snapshot, err = s.tracer.Snapshot(); err != nil {
		return t, err
	}
	t.Report = t.Snapshot.Report(&Snapshot{}, s.request.Kinds)
	t.Missing = append(t.Missing, s.tracer.Missing...)
	t.Evidence, s.beside = s.beside.Stop(), nil
	if t.Open, err = s.tracer.Pending(); err != nil {
		return t, err
	}
	if s.request.Slower > 0 {
		if t.Slow, t.SlowCount, err = s.tracer.Slow(); err != nil {
			return t, err
		}
	}
	if s.request.Files {
		t.Files, err = s.tracer.Files()
	}
	return t, err
}

// Close ends the session and all that reads the trace, without a result.
func (s *Session) Close() error {
	err := s.tracer.Close()
	if s.beside != nil {
		_ = s.beside.Stop()
		s.beside = nil
	}
	return err
}

// addLimits puts the limits that bind a target beside what was seen, and whether the pacer holds
// it, a group above it, or one below. Without a target, it says whether the pacer holds any. A
// group that has gone meanwhile has no limits.
func (e *Evidence) addLimits(ctx context.Context, h *host.Host, t *targets.Target) error {
	jobs, err := pacer.Holding(h.State)
	if t == nil {
		e.Paced = len(jobs) > 0
		return err
	}
	place := pacer.PlaceOf(t.Group, "blkio")
	e.Paced = slices.ContainsFunc(jobs, func(j pacer.Job) bool { return j.Limited.Holds(place) || place.Holds(j.Limited) })
	if err != nil {
		return err
	}
	bindings, err := t.Group.Bindings()
	if err != nil && !cgroupfs.IsGone(err) {
		return err
	}
	for _, b := range bindings {
		if b.Limit.Bounds() {
			e.Limits = append(e.Limits, DeviceLimit{Node: h.Device(ctx, b.Device).Node, Device: b.Device, Limit: b.Limit.Bound()})
		}
	}
	return nil
}
