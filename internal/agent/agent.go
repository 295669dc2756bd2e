package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/agent/source"
	"github.com/weir-io/weir/internal/base/haste"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/state"
)

// An Agent keeps the plans of one host.
type Agent struct {
	options  Options
	plans    *source.Plans
	core     *reconcile.Core
	loop     *reconcile.Loop
	tree     *source.Tree
	disks    *source.Disks
	births   *source.Births
	kinds    []*source.Kind
	measurer *measurer
	state    state.Dir // where the pacer's records are
	own      bool      // this host itself, no copy of its files
	runtime  Runtime   // nil: no container runtime is served
	cluster  Cluster   // nil: no API server is asked

	runtimeMost time.Duration // runtimeMost
	settleMost  time.Duration // settleMost
	first       *watched      // of the plans' files, until watch has it; nil: they cannot be watched yet

	reloading sync.Mutex // of one Reload at a time, so that the newest plans win

	mu      sync.Mutex
	loaded  time.Time
	refused string
}

// New loads the plans, cleans up after dead weirs, and makes sure that limits can be set here.
// Nothing else changes before Run.
func New(o Options) (a *Agent, err error) {
	first, _ := watchDir(plansIn(o)) // before they are read, so that no change is missed; Run says why it cannot be done
	defer func() {
		if err != nil && first != nil {
			_ = first.Close() // nothing was written
		}
	}()
	config, err := load(o, nil)
	if err != nil {
		return nil, err
	}
	h, err := o.Open()
	if err != nil {
		return nil, err
	}
	io, err := h.IO()
	if err == nil {
		err = fault.Instead(io.Writable(), fault.ShowOnly, fault.Remedy{Do: fault.AskHost}) // it has no dry run
	}
	if err == nil {
		if swept := errors.Join(h.Sweep(), planned.Manager{Host: h}.SweepFirst()); swept != nil {
			o.Log.Warn("some of what a killed weir left behind could not be removed", "error", swept)
		}
	}
	if err := errors.Join(err, h.Close()); err != nil {
		return nil, err
	}
	a = &Agent{options: o, first: first, plans: source.NewPlans(config), core: reconcile.NewCore(planned.Kinds()...), state: h.State, own: h.IsOwn(),
		runtimeMost: runtimeMost, settleMost: settleMost, loaded: time.Now()}
	gate := &haste.Gate{}
	of := source.Options{Open: o.Open, Plans: a.plans, Ended: a.core.Ended, Gate: gate}
	if o.Cluster != nil {
		a.cluster = o.Cluster(ClusterOptions{Changed: func(kind, name string) { a.loop.Changed(kind, name) }, Pods: a.podStates, Looked: a.hasLooked, Check: a.check, Log: o.Log})
		of.Live = a.cluster
	}
	of.Asked = func() bool { return a.runtime != nil && a.runtime.Asks() }
	a.measurer = newMeasurer(o, a.core.InForce, gate)
	of.Births = source.NewBirths(of, o.Log, func(kind, name string) { a.loop.Changed(kind, name) })
	of.Births.Soon = func(kind, name string) { a.loop.Soon(kind, name) }
	a.kinds = source.All(of)
	var sources []reconcile.Source
	for _, k := range a.kinds {
		sources = append(sources, k)
	}
	a.loop = reconcile.NewLoop(a.core, o.Log, sources...)
	a.loop.Tell = a.recordDeed
	a.births = of.Births
	a.tree = &source.Tree{Options: of, Changed: a.loop.Changed, Soon: a.loop.Soon, Written: a.loop.Written, Lost: a.loop.Lost, Log: o.Log, Births: of.Births}
	a.disks = &source.Disks{Root: h.Root, Plans: a.plans, Changed: a.loop.Changed, Log: o.Log}
	a.loop.Begun, a.loop.Silent = a.tree.Begun(), func() bool { return a.tree.Err() != nil }
	if o.Runtime != nil {
		a.runtime = o.Runtime(RuntimeOptions{Open: o.Open, Log: o.Log, Live: of.Live, Ended: a.core.Ended, Done: a.recordDone, Begun: of.Births.Take, Gate: gate,
			Plans:   func() *plans.Config { config, _ := a.plans.Now(); return config },
			Changed: func(kind string) { a.loop.Changed(kind, "") }})
	}
	return a, nil
}

// load reads the plans. Where some are in force (now), a directory that is away is an error.
func load(o Options, now *plans.Config) (*plans.Config, error) {
	read := planned.Load
	if now != nil && len(now.Files) > 0 {
		read = planned.LoadNewer
	}
	config, err := read(o.Root, o.Plans, o.Read)
	if err == nil {
		config.Annotated = o.Runtime != nil
	}
	return config, err
}

// Run keeps the plans in force until the context ends. It calls ready when each source has looked
// at its targets once, and done what was to be done, or failed. If a container runtime is served, it waits
// for that to ask the agent too, and calls ready after 10 s at the latest: kubelet may wait for it.
func (a *Agent) Run(ctx context.Context, ready func()) error {
	config, _ := a.plans.Now()
	a.options.Log.Info("plans loaded", "files", len(config.Files), "plans", len(config.Plans))
	a.record(journal.Entry{What: journal.Started, Why: a.options.Version})
	a.recordPlans("", len(config.Files), len(config.Plans), nil)
	writing, written := a.writeJournal(ctx)
	var running sync.WaitGroup
	running.Go(func() { a.births.Run(ctx) })
	running.Go(func() { a.tree.Run(ctx) })
	a.disks.Open() // before any target is looked at
	running.Go(func() { a.disks.Run(ctx) })
	running.Go(func() { a.watch(ctx) })
	running.Go(func() { a.watchPacer(ctx) })
	running.Go(func() { a.measurer.run(ctx) })
	if a.runtime != nil {
		running.Go(func() { a.runtime.Run(ctx) })
	}
	if a.cluster != nil {
		running.Go(func() { a.cluster.Run(ctx) })
	}
	running.Go(func() {
		if a.awaitBegun(ctx) {
			ready()
		}
	})
	a.loop.Run(ctx)
	running.Wait()
	a.record(journal.Entry{What: journal.Stopped})
	writing()
	<-written
	var errs []error
	for _, k := range a.kinds {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}

// awaitBegun waits until all was looked at and the runtime asks, but where a runtime is served no longer
// than kubelet may be kept waiting. It returns false if the context ends before.
func (a *Agent) awaitBegun(ctx context.Context) bool {
	var late <-chan time.Time
	if a.runtime != nil {
		late = time.After(a.runtimeMost)
	}
	select {
	case <-a.loop.Looked():
	case <-late:
		return true
	case <-ctx.Done():
		return false
	}
	for a.Ready() != nil {
		select {
		case <-time.After(runtimeEvery):
		case <-late:
			return true
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// writeJournal has the journal written until end is called. done is closed when it is written.
func (a *Agent) writeJournal(ctx context.Context) (end func(), done <-chan struct{}) {
	ctx, end = context.WithCancel(context.WithoutCancel(ctx)) // the last entries come when the agent ends
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if a.options.Journal != nil {
			a.options.Journal.Run(ctx)
		}
	}()
	return end, ended
}

// Reload takes the plans as they are now, whole or not at all: after an error the former ones stay
// in force.
func (a *Agent) Reload() error { return a.reload("", true, nil) }

// ReloadFor is Reload for somebody who is named in the journal, such as "uid 1000".
func (a *Agent) ReloadFor(by string) error { return a.reload(by, true, nil) }

// reload is ReloadFor; unless always is true, plans that are in force already are not taken again. They are where newer
// ones were refused: the log and the journal have the end of that then. isWhole reports whether the files that were read are
// whole, otherwise nothing changes; nil: they are.
func (a *Agent) reload(by string, always bool, isWhole func() bool) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	now, _ := a.plans.Now()
	config, err := load(a.options, now)
	if isWhole != nil && !isWhole() {
		return errChanged
	}
	if err != nil {
		a.refuse(by, err)
		return err
	}
	a.mu.Lock()
	refused := a.refused != ""
	a.refused, a.loaded = "", time.Now()
	a.mu.Unlock()
	if always || refused || !reflect.DeepEqual(now, config) {
		a.take(by, config)
	}
	return nil
}

// refuse says why newer plans are not in force.
func (a *Agent) refuse(by string, err error) {
	a.options.Log.Error("plans not loaded; the previous plans stay in force", "error", err) // first: who reads the status finds it there
	a.mu.Lock()
	a.refused = err.Error()
	a.mu.Unlock()
	a.recordPlans(by, 0, 0, err)
}

func (a *Agent) take(by string, config *plans.Config) {
	a.recordPlans(by, len(config.Files), len(config.Plans), nil)
	a.options.Log.Info("plans loaded", "files", len(config.Files), "plans", len(config.Plans))
	a.plans.Set(config)
	a.loop.Changed("", "")
}

// Status returns what is known now. It waits for nothing.
func (a *Agent) Status() Status {
	config, _ := a.plans.Now()
	s := Status{Files: config.Files, Sources: a.loop.Sources(), Hierarchies: a.tree.Stats()}
	if err := a.tree.Err(); err != nil {
		s.TreeError = err.Error()
	}
	s.Targets, _ = a.core.Status()
	s.Counts = a.Counts()
	s.Held = make(map[string]Held, len(s.Targets))
	for _, t := range s.Targets {
		s.Held[t.Key] = a.measurer.of(t)
	}
	if a.runtime != nil {
		status := a.runtime.Status()
		s.Runtime = &status
	}
	slices.SortFunc(s.Sources, func(x, y reconcile.Following) int { return cmp.Compare(x.Kind, y.Kind) })
	a.mu.Lock()
	defer a.mu.Unlock()
	s.Loaded, s.PlansError = a.loaded, a.refused
	return s
}

// Counts are what the agent has counted since it began. To ask costs little, with any number of targets.
func (a *Agent) Counts() Counts {
	c := a.core.Counts()
	c.Missed += a.tree.Missed()
	return c
}

// Live says why the agent does not work; nil: it does. It is asked several times a minute.
func (a *Agent) Live() error {
	a.takeLocks()
	if stuck := a.loop.Stuck(); stuck != "" {
		return fmt.Errorf("a call about %s targets takes too long", stuck)
	}
	return nil
}

// takeLocks takes each lock once: who asks has no answer where somebody does not give one back. It takes no longer with
// thousands of targets.
func (a *Agent) takeLocks() {
	a.Counts()
	a.plans.Now()
	a.loop.Sources()
	a.measurer.of(reconcile.Status{})
	if a.runtime != nil {
		a.runtime.Status()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
}

// Ready says why the agent does not do all that it is there for; nil: it does. A container runtime has
// to ask it, if one is to be served.
func (a *Agent) Ready() error {
	select {
	case <-a.loop.Looked():
	default:
		return errors.New("not all targets were looked at yet")
	}
	if a.runtime == nil {
		return nil
	}
	if s := a.runtime.Status(); s.Runtime == "" {
		return fmt.Errorf("the container runtime does not ask weird before it starts containers: %s", cmp.Or(s.Error, "it was not found yet"))
	}
	return nil
}
