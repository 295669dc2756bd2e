package nri

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	made     chan start // containers that are made now; ctx and done are not used
	notes    chan *planned.Note
	lines    chan func()   // of the log
	answer   time.Duration // answerMost
	patience time.Duration // registerMost

	mu     sync.Mutex
	status agent.RuntimeStatus
	took   []time.Duration // the last ones, in a ring
	oldest int             // of took, once that is full
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
	return &Plugin{socket: socket, options: o, starts: make(chan start), made: make(chan start, 1), notes: make(chan *planned.Note, noteMost), lines: make(chan func(), linesMost), answer: answerMost, patience: registerMost}
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

// Asks reports whether the runtime asks.
func (p *Plugin) Asks() bool { return p.runtime() != "" }

// runtime is that which asks.
func (p *Plugin) runtime() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status.Runtime
}

func (p *Plugin) count(change func(*agent.RuntimeStatus)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.status)
}

// work puts limits into force, one container after the other, until the context ends. What need not come before a
// container's start follows the answer.
func (p *Plugin) work(ctx context.Context) {
	l := p.limiter()
	if err := l.reopen(); err != nil { // else the first start would wait for that
		p.say(slog.LevelWarn, "the files of the host could not be opened; the first start of a container tries it again", "error", err)
	}
	defer func() {
		if err := l.close(); err != nil {
			p.options.Log.Warn("the files of the host could not be closed", "error", err)
		}
	}()
	reopen := time.NewTicker(openMost)
	defer reopen.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reopen.C:
			if err := l.reopen(); err != nil {
				p.say(slog.LevelWarn, "the files of the host could not be opened", "error", err)
			}
		case s := <-p.starts:
			p.setBusy(time.Now())
			limited, err := l.start(s.ctx, s.config, s.pod, s.container)
			p.setBusy(time.Time{})
			s.done <- result{limited, err}
			for _, follow := range l.takeAfter() {
				follow()
			}
		}
	}
}

// limiter makes what puts limits into force. What it tells does not wait.
func (p *Plugin) limiter() *limiter {
	return &limiter{open: p.options.Open, live: p.options.Live, begun: p.options.Begun,
		note: func(t planned.Target, n *planned.Note) {
			if p.options.Done != nil {
				p.options.Done(t)
			}
			select {
			case p.notes <- n:
			default: // the agent's next plan for it writes the record
			}
		}, unseen: func(pod string, volumes []string) {
			p.say(slog.LevelWarn, "annotations name volumes that no container of the pod has mounted yet", "pod", plain.Brief(pod), "volumes", volumes)
		}}
}

// say has a line logged. It waits for nobody: a log that hangs keeps no container from its start. What is too much
// is not logged.
func (p *Plugin) say(level slog.Level, text string, args ...any) {
	select {
	case p.lines <- func() { p.options.Log.Log(context.Background(), level, text, args...) }:
	default:
	}
}

// tell logs lines until the context ends, and then those that wait.
func (p *Plugin) tell(ctx context.Context) {
	for {
		select {
		case line := <-p.lines:
			line()
			continue
		case <-ctx.Done():
		}
		for len(p.lines) > 0 {
			(<-p.lines)()
		}
		return
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
		case n := <-p.notes:
			if err := p.noteAll(ctx, n); err != nil && ctx.Err() == nil {
				p.options.Log.Warn("limits are in force, but weir could not record them, and will not remove them with their plan", "error", err)
			}
		}
	}
}

// recordLeft writes the records that still wait when weird ends. The next weird would take limits without a record for
// somebody else's, and leave them when their plan goes.
func (p *Plugin) recordLeft(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.answer)
	defer cancel()
	select {
	case n := <-p.notes:
		if err := p.noteAll(ctx, n); err != nil {
			p.options.Log.Warn("limits are in force, but weir could not record them, and will not remove them with their plan", "error", err)
		}
	default:
	}
}

// noteAll writes the records that wait.
func (p *Plugin) noteAll(ctx context.Context, n *planned.Note) error {
	h, err := p.options.Open()
	if err != nil {
		return err
	}
	m := planned.Manager{Host: h, Config: p.options.Plans()}
	errs := []error{m.Note(ctx, n)}
	for more := true; more; {
		select {
		case n := <-p.notes:
			errs = append(errs, m.Note(ctx, n))
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
	p.say(slog.LevelWarn, "a pod is refused", "pod", podName(pod), "error", err)
	return fmt.Errorf("weir: %w", err)
}

// prepareAll prepares the starts of containers that are made, until the context ends. It does that beside the worker,
// because a disk that is busy is waited for.
func (p *Plugin) prepareAll(ctx context.Context) {
	l := p.limiter()
	defer func() {
		if err := l.close(); err != nil {
			p.options.Log.Warn("the files of the host could not be closed", "error", err)
		}
	}()
	var opened time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-p.made:
			var err error
			if time.Since(opened) > openMost {
				err, opened = l.reopen(), time.Now()
			}
			if err == nil {
				err = l.prepare(ctx, s.config, s.pod, s.container)
			}
			if err != nil && ctx.Err() == nil {
				p.say(slog.LevelWarn, "the first start on a disk may take longer: it could not be prepared", "pod", podName(s.pod), "error", err)
			}
		}
	}
}

// prepare has a container's start prepared, unless another one's is.
func (p *Plugin) prepare(pod *api.PodSandbox, container *api.Container) {
	select {
	case p.made <- start{config: p.options.Plans(), pod: pod, container: container}:
	default:
	}
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
	defer p.options.Gate.Hurry()()
	ctx, cancel := context.WithTimeout(ctx, p.answer)
	defer cancel()
	r, late := p.ask(ctx, start{ctx, config, pod, container, make(chan result, 1)})
	say := func(level slog.Level, text string, args ...any) {
		p.say(level, text, append([]any{"pod", podName(pod), "container", plain.Brief(container.GetName()), "took", time.Since(began)}, args...)...)
	}
	var own *ownError
	switch {
	case late:
		p.count(func(s *agent.RuntimeStatus) { s.Late++ })
		say(slog.LevelWarn, "a container starts without its limits: setting them takes too long; weir sets them later")
	case errors.As(r.err, &own):
		p.count(func(s *agent.RuntimeStatus) { s.Failed++ })
		say(slog.LevelWarn, "a container does not start: its limits cannot be set", "error", r.err)
		return fmt.Errorf("weir: %s", plain.Brief(r.err.Error()))
	case r.err != nil:
		p.count(func(s *agent.RuntimeStatus) { s.Failed++ })
		say(slog.LevelWarn, "a container starts without its limits: they cannot be set", "error", r.err)
	default:
		p.answered(time.Since(began), r.limited)
		if r.limited {
			say(slog.LevelInfo, "limits in force before the start")
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
		p.took[p.oldest] = took
		p.oldest = (p.oldest + 1) % tookMost
	}
}

// lookAgain has the agent look at all pods and containers.
func (p *Plugin) lookAgain() {
	p.options.Changed("pod")
	p.options.Changed("containerd")
}
