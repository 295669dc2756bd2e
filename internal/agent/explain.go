package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/look/explain"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/planned"
)

const (
	// explainMost bounds the search for one reason, and explainEvery how often one is searched for.
	explainMost  = 30 * time.Second
	explainEvery = time.Second
	// To find a reason takes tens of milliseconds of a processor. For limits that were not held, as was
	// measured, one is searched for at once. For those that are not expected to hold, which can be all of
	// thousands, the first expectedBurst are searched for so, and then one in each expectedEvery, or in
	// expectedShare times as long as the last search took.
	expectedBurst = 8
	expectedEvery = 30 * time.Second
	expectedShare = 2000
	// questionsMost bounds the questions that wait. What is too much is asked after a later reading.
	questionsMost = 64
)

// A Finding is why a limit is not held: what weir why says of the target.
type Finding struct {
	Code string // of why's finding; empty: none was found, or looked for
	Text string
}

// A question is for why a target's limit is not held.
type question struct {
	key    string
	about  string // what is not held: the answer is good as long as this is the same
	answer Finding
}

// question asks about targets with limits that are not held, or not to be held, once each. The
// caller has the lock.
func (m *measurer) question(all []held.Target) {
	for _, t := range all {
		about, ask := "", m.expected
		for _, l := range m.verdicts[t.Key].Limits {
			if l.State == held.NotHeld {
				ask = m.ask
			}
			if l.State == held.NotHeld || l.Unheld {
				about += fmt.Sprintf("%v %v %d %s;", l.Device, l.Key, l.PerSec, l.State)
			}
		}
		if was := m.asked[t.Key]; about == was.about {
			continue
		}
		if about == "" {
			delete(m.asked, t.Key)
			continue
		}
		q := question{key: t.Key, about: about}
		select {
		case ask <- q:
			m.asked[t.Key] = q
		default:
		}
	}
	for key := range m.asked {
		if _, is := m.verdicts[key]; !is {
			delete(m.asked, key)
		}
	}
}

// explain answers questions, until the context ends.
func (m *measurer) explain(ctx context.Context) {
	spare := expectedBurst
	every := expectedEvery
	more := time.NewTimer(every)
	defer more.Stop()
	for {
		expected := m.expected
		if spare == 0 {
			expected = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-more.C:
			spare = min(spare+1, expectedBurst)
			more.Reset(every)
			continue
		case q := <-m.ask:
			if !m.answer(ctx, q) {
				continue
			}
		case q := <-expected:
			began := time.Now()
			if !m.answer(ctx, q) {
				continue
			}
			spare--
			every = max(expectedEvery, expectedShare*time.Since(began))
			more.Reset(every)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(explainEvery):
		}
	}
}

// answer answers one question; false: it is not asked any more, as its target has gone or changed.
func (m *measurer) answer(ctx context.Context, q question) bool {
	m.mu.Lock()
	asked := m.asked[q.key].about == q.about
	m.mu.Unlock()
	if !asked {
		return false
	}
	answer, err := m.findingOf(ctx, q.key)
	if err != nil {
		answer = Finding{Text: "weir cannot say why: " + err.Error()}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked[q.key].about == q.about {
		q.answer = answer
		m.asked[q.key] = q
	}
	return true
}

// findingOf is the first finding that breaks a target's limits. The host is opened for it alone,
// because facts are read in all corners of it.
func (m *measurer) findingOf(ctx context.Context, key string) (f Finding, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, explainMost, fmt.Errorf("not done within %v", explainMost))
	defer cancel()
	h, err := m.options.Open()
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	facts, _, err := explain.Facts(ctx, h, explain.Request{Subject: key, Planned: planned.SetFor(h)})
	if err != nil {
		return f, err
	}
	for _, one := range why.Judge(facts).Findings { // in the order of severity
		if one.Severity == why.Breaks {
			return Finding{one.Code, one.Text}, nil
		}
	}
	return Finding{Text: "weir why finds no reason"}, nil
}
