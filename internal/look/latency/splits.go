package latency

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/look/trace"
)

// A Moment is what writes have spent their time on until then.
type Moment struct {
	At     int64 // CLOCK_MONOTONIC, ns
	Writes uint64
	Split  trace.Split
}

const (
	// momentsMax bounds how many moments of a run are kept: when it is reached, every second
	// moment is dropped, and from then on half as many are added.
	momentsMax   = 256
	momentsEvery = 40 * time.Millisecond
	// restsFor is how many times longer than a reading takes none follows: the maps are
	// read entry by entry, and the processors are there for the writer.
	restsFor = 20
)

// A watch takes moments of a trace until it is told to end.
type watch struct {
	tracer *trace.Tracer // nil: there is nothing to watch
	stop   chan struct{}
	ended  chan error
	all    []Moment
	every  time.Duration
}

func watchSplits(tracer *trace.Tracer) *watch {
	w := &watch{tracer: tracer, stop: make(chan struct{}), ended: make(chan error, 1), every: momentsEvery}
	if tracer == nil {
		return w
	}
	w.all = []Moment{{At: now()}} // of the group, in which nobody is yet
	go func() { w.ended <- w.run() }()
	return w
}

func (w *watch) run() error {
	for {
		began := time.Now()
		if err := w.take(); err != nil {
			return err
		}
		select {
		case <-w.stop:
			return nil
		case <-time.After(max(w.every, restsFor*time.Since(began))):
		}
	}
}

func (w *watch) take() error {
	writes, err := w.tracer.Ops(trace.Write)
	if err != nil {
		return err
	}
	w.all = append(w.all, Moment{At: now(), Writes: writes.Histogram.Count(), Split: writes.Histogram.Split()})
	if len(w.all) >= momentsMax {
		w.all, w.every = everySecond(w.all), 2*w.every
	}
	return nil
}

// everySecond keeps the first of each pair, and the last of all.
func everySecond(all []Moment) []Moment {
	var kept []Moment
	for i := 0; i < len(all)-1; i += 2 {
		kept = append(kept, all[i])
	}
	return append(kept, all[len(all)-1])
}

// end takes the last moment, and reports.
func (w *watch) end(r *Run) error {
	if w.tracer == nil {
		return nil
	}
	close(w.stop)
	if err := <-w.ended; err != nil {
		return err
	}
	if err := w.take(); err != nil {
		return err
	}
	s, err := w.tracer.Snapshot()
	if err != nil {
		return err
	}
	report := s.Report(&trace.Snapshot{}, []trace.Kind{trace.Write})
	report.Missing = append(report.Missing, w.tracer.Missing...)
	r.Trace, r.Splits = &report, w.all
	return nil
}

// now reads CLOCK_MONOTONIC, ns.
func now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // every kernel has it
	return ts.Nano()
}
