package source

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

const (
	// recordMost bounds the births whose record waits for the disk.
	recordMost = 256
	// aheadEvery is how often the devices of the plans are looked up, while groups are born. A group
	// that gets the rule of another device than it should has it until its source has looked.
	aheadEvery = 10 * time.Second
	// aheadMost bounds one such look.
	aheadMost = 30 * time.Second
	// sweepEvery is how often weird tries again to put births on record.
	sweepEvery = 10 * time.Second
)

// Births gives newborn groups the rules of their plans before anybody is asked about them: what plans
// the containers have that were made and do not run yet, which plan a unit of some name has, and which
// devices the plans are on, is known by then. The sources look at each target after that, and do
// whatever else is to be done.
type Births struct {
	Options Options
	Log     *slog.Logger
	// Changed is told of the targets of a group, as Tree.Changed is, once the group has its rules.
	Changed func(kind, name string)
	// Soon is told instead, as Tree.Soon is; nil: Changed is.
	Soon func(kind, name string)

	begun chan begun
	used  chan struct{} // the devices were needed
	retry time.Duration // sweepEvery

	serving sync.Mutex
	host    *host.Host // nil: it cannot be opened now

	mu    sync.Mutex
	known known
	ahead ahead
	new   map[string]int // groups that were born, and that their targets are not told of yet, by their paths
	told  string         // the last error in the log
	left  bool           // there are births that nobody has put on record
}

// A begun birth has its rules, and no record on a disk.
type begun struct {
	*planned.Birth
	of birth
}

// ahead is what is known of the plans in force.
type ahead struct {
	config *plans.Config
	rules  map[string][]hold.Change // by plan; one that is not here cannot be told
}

// A birth is a group that was born, and the targets whose group it may be.
type birth struct {
	path  string
	names []named
}

// NewBirths makes one that knows no containers.
func NewBirths(o Options, log *slog.Logger, changed func(kind, name string)) *Births {
	return &Births{Options: o, Log: log, Changed: changed, new: map[string]int{}, begun: make(chan begun, recordMost), used: make(chan struct{}, 1), retry: sweepEvery}
}

// Run has births served until the context ends.
func (b *Births) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { b.lookAhead(ctx) })
	running.Go(func() { b.keepOpen(ctx) })
	running.Go(func() { b.record(ctx) })
	running.Wait()
}

// Born gives a group its rules before it returns, and tells its targets once these are on record. The caller's thread does
// all of it: to hand it to another one takes longer than the work. It waits for no disk.
func (b *Births) Born(path string, names []named) {
	b.setNew(path, 1)
	one := birth{path, names}
	its, err := b.serve(one)
	b.news(err)
	b.hand(its, one)
}

func (b *Births) serve(one birth) (*planned.Birth, error) {
	b.serving.Lock()
	defer b.serving.Unlock()
	if b.host == nil {
		return nil, nil
	}
	return b.put(&planned.Manager{Host: b.host, Live: b.Options.Live}, one)
}

// WillTell reports whether the targets of a group are told of its birth, later than now.
func (b *Births) WillTell(path string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.new[path] > 0
}

func (b *Births) setNew(path string, by int) {
	if path == "" { // others have written the rules
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.new[path] += by; b.new[path] == 0 {
		delete(b.new, path)
	}
}

// Take puts the birth of rules on record that others have written, and tells of the target after that, so that the rest
// is done. A nil birth is told of alone. It never waits.
func (b *Births) Take(its *planned.Birth, kind, name string) {
	b.hand(its, birth{names: []named{{kind, name}}})
}

// Learn notes containers as their engine describes them. With all, there are no others of the kind.
func (b *Births) Learn(kind string, all bool, listed ...targets.Listed) {
	config, _ := b.Options.Plans.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if all {
		b.known.forgetAll(kind)
	}
	for _, l := range listed {
		b.known.learn(kind, l, config)
	}
}

// Forget forgets a container.
func (b *Births) Forget(kind, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known.forget(kind, id)
}

// hand has a birth put on record, and its targets told of it after that: who looks at them then finds the record.
func (b *Births) hand(its *planned.Birth, one birth) {
	if its == nil {
		b.tell(one)
		return
	}
	select {
	case b.begun <- begun{its, one}:
		return
	default: // the disk hangs
	}
	b.news(its.Leave())
	b.setLeft(true)
	b.tell(one)
}

// setLeft notes whether there are births that nobody has put on record, and returns what was noted before.
func (b *Births) setLeft(left bool) (was bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, b.left = b.left, left
	return was
}

func (b *Births) isLeft() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}

// tell tells of the targets of a birth. Those whose container runtime has asked, or is going to ask, wait for no look: it
// does not let their programs run before their limits hold.
func (b *Births) tell(one birth) {
	b.setNew(one.path, -1)
	for _, n := range one.names {
		if b.Soon != nil && (one.path == "" || b.Options.isAsked(n)) {
			b.Soon(n.kind, n.name)
		} else {
			b.Changed(n.kind, n.name)
		}
	}
}

// record puts births on record. Those that cannot be put there are tried again with the next birth, and now and then.
func (b *Births) record(ctx context.Context) {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return // the next weird does it
		case <-again:
			b.sweepLeft()
		case one := <-b.begun:
			err := one.Record()
			b.news(err)
			if err != nil {
				b.setLeft(true)
			} else {
				b.sweepLeft()
			}
			b.tell(one.of)
		}
		if again = nil; b.isLeft() {
			again = time.After(b.retry)
		}
	}
}

// sweepLeft puts on record what was left. Everything is looked at then: who has looked before has found the rules in
// force, and no record that asks for the rest.
func (b *Births) sweepLeft() {
	if !b.setLeft(false) {
		return
	}
	err := b.sweep()
	b.news(err)
	if err != nil {
		b.setLeft(true)
		return
	}
	b.Changed("", "")
}

// sweep puts on record what was left.
func (b *Births) sweep() (err error) {
	h, err := b.Options.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return planned.Manager{Host: h}.SweepFirst()
}

// put gives one group its rules, if it is known whose it is; nil: it has given none.
func (b *Births) put(m *planned.Manager, one birth) (*planned.Birth, error) {
	io, err := m.Host.IO()
	if err != nil {
		return nil, err
	}
	g, err := io.Group(one.path)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	now := b.ahead
	b.mu.Unlock()
	if m.Config = now.config; m.Config == nil {
		return nil, nil
	}
	if config, _ := b.Options.Plans.Now(); config != m.Config { // nothing is known of these plans yet
		return nil, nil
	}
	l, choice, is := b.choose(*m, g, one.names)
	if !is {
		return nil, nil
	}
	select {
	case b.used <- struct{}{}:
	default:
	}
	rules := now.rules[choice.Plan]
	if len(rules) == 0 {
		return nil, nil
	}
	return m.BeginFirst(l, choice, g, rules)
}

// choose finds the target of a group that has a plan. Of a container that is there, and of which not enough is known, it
// finds none: its unit's plan counts only if the container has none.
func (b *Births) choose(m planned.Manager, g cgroupfs.Group, names []named) (l targets.Listed, c plans.Choice, is bool) {
	var all []targets.Listed
	if kind, id, is := targets.ContainerOf(g); is && !isOuter(kind, g) {
		b.mu.Lock()
		known, ok, is := b.known.of(kind, id, m.Config)
		b.mu.Unlock()
		switch {
		case ok:
			all = append(all, known)
		case is:
			return l, c, false
		}
	}
	for _, n := range names {
		if n.kind == "unit" && n.name != "" {
			all = append(all, targets.Listed{Kind: n.kind, Name: n.name, Names: []string{n.name}})
		}
	}
	for _, l := range all {
		if c := m.ChoiceOf(l); !c.IsNone() {
			return l, c, true
		}
	}
	return l, c, false
}

// isOuter reports whether the limits of a container may belong to a group below, which the engine has
// not made yet.
func isOuter(kind string, g cgroupfs.Group) bool {
	return kind == "podman" && g.Hierarchy().Version == cgroupfs.V2 && !targets.IsInner(g.Path())
}

// lookAhead looks up the devices of the plans: for each new configuration at once, and again as long
// as they are needed.
func (b *Births) lookAhead(ctx context.Context) {
	for {
		config, next := b.Options.Plans.Now()
		b.news(b.prepare(ctx, config))
		pause := time.NewTimer(aheadEvery)
		select {
		case <-ctx.Done():
		case <-next:
		case <-pause.C:
			select {
			case <-ctx.Done():
			case <-next:
			case <-b.used:
			}
		}
		pause.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func (b *Births) prepare(ctx context.Context, config *plans.Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, aheadMost)
	defer cancel()
	h, err := b.Options.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	m := planned.Manager{Host: h, Config: config}
	now := ahead{config: config, rules: map[string][]hold.Change{}}
	for _, name := range m.PlansNamed() {
		rules, err := m.Ahead(ctx, name)
		if err == nil { // else the source says what is wrong, of each target
			now.rules[name] = slices.Clip(rules)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead = now
	return nil
}

// news logs an error, unless it is the last one again.
func (b *Births) news(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	b.mu.Lock()
	is := text != "" && text != b.told
	if text != "" {
		b.told = text
	}
	b.mu.Unlock()
	if is {
		b.Log.Warn("newborn cgroups get their limits late", "error", err)
	}
}
