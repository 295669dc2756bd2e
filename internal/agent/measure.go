package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/base/haste"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
)

const (
	// busyEvery and restEvery are how often the counters of all groups are read: while a target is
	// near a limit, and otherwise.
	busyEvery = 2 * time.Second
	restEvery = 10 * time.Second
	// Once nothing was read or written under any limit in two readings, the time until the next one doubles with each
	// such reading, up to stillEvery.
	stillEvery = 2 * time.Minute
	// idleEvery is how often groups at rest are read all the same, beside the sums that tell that they are at rest: to
	// read 2,000 takes 40 ms of a processor. Who asks for a snapshot gets newer ones.
	idleEvery = 5 * time.Minute
	// failedEvery is how often that is tried again where it fails.
	failedEvery = time.Minute
	// sampleMost bounds one reading: engines are asked for names.
	sampleMost = 10 * time.Second
	// freshMost is how old a snapshot for somebody who asks may be.
	freshMost = time.Second
	// followedMost is how old a snapshot may be that the agent itself takes for its own: while somebody follows what
	// groups do, all is read each second for that.
	followedMost = 1500 * time.Millisecond
	// watchMost is how long a host and its watcher are used: a hierarchy may be mounted at any time.
	watchMost = time.Hour
	// readingsMost is in how many readings one who asks waits for rates.
	readingsMost = 3
	// detailsMost is of how many known groups a reading looks at more than the counters.
	detailsMost = 200
)

// A Held says whether the limits of a target are held, and why not.
type Held struct {
	held.Verdict
	Finding
}

// A measurer reads counters, and has a held.Judge judge them.
type measurer struct {
	options Options
	targets func() []reconcile.Status
	gate    *haste.Gate // closed while a container waits for its start; nil: there is none

	sampling chan struct{} // whoever has its token may use what follows
	judge    *held.Judge
	host     *host.Host
	watcher  *watch.Watcher
	opened   time.Time

	mu       sync.Mutex
	last     *watch.Snapshot
	busy     bool            // a target was near a limit then
	verdicts map[string]Held // by key
	asked    map[string]question
	ask      chan question // about limits that were not held
	expected chan question // about those that are not expected to hold
}

func newMeasurer(o Options, targets func() []reconcile.Status, gate *haste.Gate) *measurer {
	m := &measurer{options: o, targets: targets, gate: gate, sampling: make(chan struct{}, 1), judge: held.NewJudge(),
		verdicts: map[string]Held{}, asked: map[string]question{}, ask: make(chan question, questionsMost), expected: make(chan question, questionsMost)}
	m.sampling <- struct{}{}
	return m
}

// run measures until the context ends.
func (m *measurer) run(ctx context.Context) {
	var asking sync.WaitGroup
	asking.Go(func() { m.explain(ctx) })
	defer asking.Wait()
	told, quiet := "", 0
	for {
		wait := restEvery
		if len(m.inForce(time.Now())) > 0 {
			s, busy, err := m.due(ctx)
			if ctx.Err() == nil && isNews(&told, err) && err != nil {
				m.options.Log.Warn("weird cannot measure whether limits are held", "error", err, "again_in", failedEvery)
			}
			if wait = failedEvery; err == nil {
				wait, quiet = pace(s, busy, quiet)
			}
		}
		select {
		case <-ctx.Done():
			<-m.sampling // nobody else uses the watcher any more, and nobody will
			if err := m.shut(); err != nil {
				m.options.Log.Warn("the files of the host could not be closed", "error", err)
			}
			return
		case <-time.After(wait):
		}
	}
}

// pace is how long to wait after a reading, and in how many in a row no limited group did I/O, if there
// were quiet before it.
func pace(s *watch.Snapshot, busy bool, quiet int) (wait time.Duration, _ int) {
	switch {
	case busy:
		return busyEvery, 0
	case slices.ContainsFunc(s.Groups, moves):
		return restEvery, 0
	case slices.ContainsFunc(s.Groups, mayMove):
		return restEvery, quiet
	}
	return restAfter(quiet + 1), quiet + 1
}

// restAfter is how long to wait after so many readings in which no limited group did I/O.
func restAfter(quiet int) time.Duration {
	return min(restEvery<<min(max(quiet-1, 0), 8), stillEvery)
}

// moves reports whether a group with limits has done I/O.
func moves(g *watch.Group) bool {
	sum, known := g.Sum()
	return g.Limited() && known && sum != (watch.Rates{})
}

// mayMove reports whether a group with limits has done I/O before its first reading: only the next one
// tells whether it still does.
func mayMove(g *watch.Group) bool {
	return g.Limited() && slices.ContainsFunc(g.Devices, func(d watch.Device) bool {
		return d.Rates == nil && d.Total != (cgroupfs.Stat{Device: d.Total.Device})
	})
}

// inForce are the targets whose limits were in force at a time, and still are.
func (m *measurer) inForce(at time.Time) (all []held.Target) {
	for _, t := range m.targets() {
		if t.State == reconcile.InForce && !t.Since.After(at) && t.Group != "" && t.Plan != reconcile.NoPlan {
			all = append(all, held.Target{Key: t.Key, Group: t.Group})
		}
	}
	return all
}

// errNoRates says that one watcher after the other was closed after its first reading.
var errNoRates = errors.New("nothing can be read twice")

// snapshot is what was read last, if that is fresh, or what is read now.
func (m *measurer) snapshot(ctx context.Context) (*watch.Snapshot, error) { return m.newer(ctx, nil) }

// newer is what was read last, if it is another snapshot than seen and fresh, or what is read now. It has rates: the first
// reading of a watcher has none, and who asks waits for the second.
func (m *measurer) newer(ctx context.Context, seen *watch.Snapshot) (s *watch.Snapshot, err error) {
	for range readingsMost {
		m.mu.Lock()
		s = m.last
		m.mu.Unlock()
		if s == nil || s == seen || time.Since(s.At) >= freshMost {
			if s, _, err = m.sample(ctx, watch.IdleEvery); err != nil {
				return nil, err
			}
		}
		if s.Window > 0 {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Until(s.At.Add(freshMost))):
		}
	}
	return nil, errNoRates
}

// due reads the counters, unless they were just read for somebody else: the judge has seen that, too.
func (m *measurer) due(ctx context.Context) (s *watch.Snapshot, busy bool, err error) {
	m.mu.Lock()
	s, busy = m.last, m.busy
	m.mu.Unlock()
	if s != nil && time.Since(s.At) < followedMost {
		return s, busy, nil
	}
	return m.sample(ctx, idleEvery)
}

// sample reads the counters once, those of groups at rest if they are older than idle. busy says that a target is near a
// limit.
func (m *measurer) sample(ctx context.Context, idle time.Duration) (s *watch.Snapshot, busy bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sampleMost, fmt.Errorf("not done within %v", sampleMost))
	defer cancel()
	select {
	case <-m.sampling:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	defer func() { m.sampling <- struct{}{} }()
	if err := m.open(); err != nil {
		return nil, false, err
	}
	m.gate.GiveWay(ctx)
	m.watcher.SetIdle(idle)
	if s, err = m.watcher.Sample(ctx); err != nil {
		if ctx.Err() == nil {
			err = errors.Join(err, m.shut())
		}
		return nil, false, err
	}
	m.renew(ctx)
	all := m.inForce(s.At)
	busy = m.judge.Look(s, all)
	verdicts := map[string]Held{}
	for _, t := range all {
		verdicts[t.Key] = Held{Verdict: m.judge.Of(t.Key)}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.busy, m.verdicts = s, busy, verdicts
	m.question(all)
	return s, busy, nil
}

// open opens the host and its watcher, if they are not open. What was measured stays.
func (m *measurer) open() (err error) {
	if m.watcher == nil {
		m.host, m.watcher, err = m.another()
		m.opened = time.Now()
	}
	return err
}

// another opens the host and a watcher of it.
func (m *measurer) another() (*host.Host, *watch.Watcher, error) {
	h, err := m.options.Open()
	if err != nil {
		return nil, nil, err
	}
	w, err := limiting.Manager{Host: h}.Watch(detailsMost, true)
	if err != nil {
		return nil, nil, errors.Join(err, h.Close())
	}
	return h, w, nil
}

// renew replaces a host and a watcher that are old, right after they were read. The new watcher reads then for the first
// time, which has no rates: nobody gets that reading. If that fails, the old ones stay.
func (m *measurer) renew(ctx context.Context) {
	if time.Since(m.opened) <= watchMost {
		return
	}
	h, w, err := m.another()
	if err == nil {
		if _, err = w.Sample(ctx); err != nil {
			err = errors.Join(err, w.Close(), h.Close())
		} else {
			err = m.shut()
			m.host, m.watcher = h, w
		}
	}
	m.opened = time.Now()
	if err != nil {
		m.opened = m.opened.Add(failedEvery - watchMost)
		m.options.Log.Warn("weird cannot look for hierarchies that were mounted since it began to measure", "error", err, "again_in", failedEvery)
	}
}

func (m *measurer) shut() error {
	if m.watcher == nil {
		return nil
	}
	err := errors.Join(m.watcher.Close(), m.host.Close())
	m.watcher, m.host = nil, nil
	return err
}

// of is what is told of a target, by its key.
func (m *measurer) of(t reconcile.Status) Held {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, known := m.verdicts[t.Key]
	if !known || t.State != reconcile.InForce {
		return Held{Verdict: held.Verdict{State: held.NotTold}}
	}
	was := v.State
	if v.Verdict = v.After(t.Since); v.State == was { // else the limits have changed since
		v.Finding = m.asked[t.Key].answer
	}
	return v
}
