package load

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	tickEvery  = int64(100 * time.Millisecond)
	stallAfter = int64(time.Second)
	stallsMax  = 1000
)

// A meter counts operations, each as it ends. Times are CLOCK_MONOTONIC nanoseconds.
type meter struct {
	clock
	block    int64
	warm, to int64 // the window's length is to
	report   *reporter
	stopped  atomic.Bool

	total    Tick
	nextTick int64
	began    int64 // of the load, and then of the window
	counting bool
	cached   float64 // bytes
	latency  histogram
	result   Result
}

// newMeter starts counting. stop ends its watch over ctx.
func newMeter(ctx context.Context, j Job, report *reporter) (m *meter, stop func(), err error) {
	c, err := newClock()
	if err != nil {
		return nil, nil, err
	}
	m = &meter{
		clock: c, block: int64(j.Block), warm: int64(j.Warm), to: int64(j.For), report: report,
		result: Result{Stalls: make([]Stall, 0, stallsMax)},
	}
	unwatch := context.AfterFunc(ctx, func() { m.stopped.Store(true) })
	return m, func() { unwatch() }, nil
}

// start is when the first operation begins. It writes the first tick, of nothing.
func (m *meter) start() (now int64, err error) {
	m.began = m.now()
	m.nextTick = m.began
	return m.tick(m.began)
}

// done counts an operation, of which cached (0 to 1) came from the page cache. It
// returns the time at which the next one can begin, and whether the window is over.
func (m *meter) done(began, ended int64, cached float64) (now int64, over bool, err error) {
	m.total.Ops++
	m.total.Bytes += m.block
	if ended-began > stallAfter && len(m.result.Stalls) < stallsMax {
		m.result.Stalls = append(m.result.Stalls, Stall{At: began, For: time.Duration(ended - began)})
	}
	switch {
	case m.counting:
		m.result.Ops++
		m.cached += cached
		m.result.Max = max(m.result.Max, time.Duration(ended-began))
		m.latency.add(ended - began)
		over = ended-m.began >= m.to
	case ended-m.began >= m.warm:
		// The window starts as an operation ends, and ends as one ends.
		m.counting, m.began = true, ended
	}
	if ended < m.nextTick && !over {
		return ended, false, nil
	}
	now, err = m.tick(ended)
	if over {
		m.result.Ended = ended
	}
	return now, over, err
}

// tick reports, and returns the time after that.
func (m *meter) tick(now int64) (int64, error) {
	for m.nextTick <= now {
		m.nextTick += tickEvery
	}
	if m.report == nil {
		return now, nil
	}
	m.total.At = now
	err := m.report.tick(m.total)
	return m.now(), err
}

func (m *meter) sum() Result {
	r := m.result
	r.Began = m.began
	r.Elapsed = time.Duration(r.Ended - r.Began)
	r.Bytes = r.Ops * m.block
	r.P50 = min(time.Duration(m.latency.quantile(.5)), r.Max) // the end of its bucket
	r.P99 = min(time.Duration(m.latency.quantile(.99)), r.Max)
	r.Cached = int64(m.cached * float64(m.block))
	return r
}
