package nri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
)

// A Plugin serves one runtime.
type Plugin struct {
	socket   string
	options  agent.RuntimeOptions
	starts   chan start
	notes    chan planned.Target
	answer   time.Duration // answerMost
	patience time.Duration // registerMost

	mu     sync.Mutex
	status agent.RuntimeStatus
	took   []time.Duration // the last ones, in a ring
	busy   time.Time       // when the worker has begun what it does now; zero: it does nothing
}

// A start is a container that waits for its limits.
type start struct {
	ctx       context.Context
	config    *plans.Config
	pod       *api.PodSandbox
	container *api.Container
	done      chan result
}

type result struct {
	limited bool
	err     error
}

// New makes a Plugin. It does nothing before Run.
func New(socket string, o agent.RuntimeOptions) *Plugin {
	return &Plugin{socket: socket, options: o, starts: make(chan start), notes: make(chan planned.Target, noteMost), answer: answerMost, patience: registerMost}
}

// Status returns what is known now. It waits for nothing.
func (p *Plugin) Status() agent.RuntimeStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status
	if len(p.took) > 0 {
		sorted := slices.Sorted(slices.Values(p.took))
		s.P99 = sorted[(len(sorted)*99-1)/100]
	}
	return s
}

func (p *Plugin) count(change func(*agent.RuntimeStatus)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.status)
}

// work puts limits into force, one container after the other, until the context ends.
func (p *Plugin) work(ctx context.Context) {
	l := &limiter{open: p.options.Open, live: p.options.Live, note: func(t planned.Target) {
		if p.options.Done != nil {
			p.options.Done(t)
		}
		if !strings.HasPrefix(t.Name, "pod:") && !strings.HasPrefix(p.Status().Runtime, containerd) {
			return // no source would ever take a record of CRI-O's container away
		}
		select {
		case p.notes <- t:
		default: // the agent's next plan for it writes the record
		}
	}, unseen: func(pod string, volumes []string) {
		p.options.Log.Warn("annotations name volumes that no container of the pod has mounted yet", "pod", plain.Brief(pod), "volumes", volumes)
	}}
	defer func() {
		if err := l.close(); err != nil {
			p.options.Log.Warn("the files of the host could not be closed", "error", err)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-p.starts:
			p.setBusy(time.Now())
			limited, err := l.start(s.ctx, s.config, s.pod, s.container)
			p.setBusy(time.Time{})
			s.done <- result{limited, err}
		}
	}
}

func (p *Plugin) setBusy(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = since
}

// isStuck reports whether the worker has something that takes longer than an answer may.
func (p *Plugin) isStuck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.busy.IsZero() && time.Since(p.busy) > p.answer
}

// record writes records of what was put into force, until the context ends.
func (p *Plugin) record(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-p.notes:
			if err := p.noteAll(ctx, t); err != nil && ctx.Err() == nil {
				p.options.Log.Warn("limits are in force, but weir could not record them, and will not remove them with their plan", "error", err)
			}
		}
	}
}

// noteAll writes the records that wait.
func (p *Plugin) noteAll(ctx context.Context, t planned.Target) error {
	h, err := p.options.Open()
	if err != nil {
		return err
	}
	m := planned.Manager{Host: h, Config: p.options.Plans()}
	errs := []error{m.Note(ctx, t)}
	for more := true; more; {
		select {
		case t := <-p.notes:
			errs = append(errs, m.Note(ctx, t))
		default:
			more = false
		}
	}
	return errors.Join(append(errs, h.Close())...)
}

// check refuses a pod whose annotations are wrong.
func (p *Plugin) check(pod *api.PodSandbox) error {
	m := planned.Manager{Config: p.options.Plans(), Live: p.options.Live}
	err := m.Check(m.Now(listedPod(pod)).Annotations)
	if err == nil {
		return nil
	}
	p.count(func(s *agent.RuntimeStatus) { s.Refused++ })
	p.options.Log.Warn("a pod is refused", "pod", podName(pod), "error", err)
	return fmt.Errorf("weir: %w", err)
}

func podName(pod *api.PodSandbox) string {
	return plain.Brief(pod.GetNamespace() + "/" + pod.GetName())
}

// limit puts the limits of a container that waits for its start into force. An error keeps it from
// starting.
func (p *Plugin) limit(ctx context.Context, pod *api.PodSandbox, container *api.Container) error {
	p.count(func(s *agent.RuntimeStatus) { s.Starts++ })
	began, config := time.Now(), p.options.Plans()
	m := planned.Manager{Config: config, Live: p.options.Live}
	its := m.Now(listedPod(pod))
	if m.ChoiceOf(its).IsNone() && m.ChoiceOf(listedContainer(its, container)).IsNone() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.answer)
	defer cancel()
	r, late := p.ask(ctx, start{ctx, config, pod, container, make(chan result, 1)})
	say := p.options.Log.With("pod", podName(pod), "container", plain.Brief(container.GetName()), "took", time.Since(began))
	var own *ownError
	switch {
	case late:
		p.count(func(s *agent.RuntimeStatus) { s.Late++ })
		say.Warn("a container starts without its limits: setting them takes too long; weir sets them later")
	case errors.As(r.err, &own):
		p.count(func(s *agent.RuntimeStatus) { s.Failed++ })
		say.Warn("a container does not start: its limits cannot be set", "error", r.err)
		return fmt.Errorf("weir: %s", plain.Brief(r.err.Error()))
	case r.err != nil:
		p.count(func(s *agent.RuntimeStatus) { s.Failed++ })
		say.Warn("a container starts without its limits: they cannot be set", "error", r.err)
	default:
		p.answered(time.Since(began), r.limited)
		if r.limited {
			say.Info("limits in force before the start")
		}
		return nil
	}
	p.lookAgain()
	return nil
}

// ask has the worker do something. It reports whether that takes too long.
func (p *Plugin) ask(ctx context.Context, s start) (r result, late bool) {
	if p.isStuck() {
		return r, true
	}
	select {
	case p.starts <- s:
	case <-ctx.Done():
		return r, true
	}
	select {
	case r = <-s.done:
		return r, r.err != nil && ctx.Err() != nil
	case <-ctx.Done():
		return r, true
	}
}

func (p *Plugin) answered(took time.Duration, limited bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limited {
		p.status.Limited++
	}
	if len(p.took) < tookMost {
		p.took = append(p.took, took)
	} else {
		p.took[p.status.Starts%tookMost] = took
	}
}

// lookAgain has the agent look at all pods and containers.
func (p *Plugin) lookAgain() {
	p.options.Changed("pod")
	p.options.Changed("containerd")
}
