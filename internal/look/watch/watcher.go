package watch

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// Options say what a Watcher reads, and how often.
type Options struct {
	Root    string              // where the host's files are: "/", or a directory with a copy
	IO      *cgroupfs.Hierarchy // whose groups are watched
	Memory  *cgroupfs.Hierarchy // whose groups of the same paths have memory.stat; nil: none is read
	Now     func() time.Time    // nil: time.Now
	Details int                 // of how many known groups a reading looks at more than the counters; 0: of all that are due
	Keep    int                 // how many files stay open; 0: half of what the process may open
	// Follow has the kernel tell of new groups and written rules, for who reads more than once or
	// twice. Without it both are looked for.
	Follow bool
	// Describe returns what is known of groups beside the kernel's counters, one answer for each
	// group. It is asked about groups that are new, about limited ones when their limits change,
	// and each minute, or each five minutes as long as they do no I/O. nil: a group has its path for a name, and it is not known what holds.
	Describe func(context.Context, []Limited) ([]Known, error)
	// Paced returns what weir's pacer holds now, by the path of the group. nil: nothing.
	Paced func() (map[string]Paced, error)
	// Paused returns for how long the pacer has paused groups, by their paths. It is asked while Paced
	// has any that it holds; that it does not answer hides nothing else. nil: nobody is asked.
	Paused func() (map[string]time.Duration, error)
}

// Known is what is known of a group beside the kernel's counters.
type Known struct {
	Target   string
	InPod    targets.InPod // the container of a Kubernetes pod that it is; the zero value: it is none
	Owner    targets.Owner
	Expected []*place.Expected // of its limits; none: it is not known
}

// How often what is read.
const (
	wholeEvery    = 15 * time.Second // v1's operations, of groups that are read
	rulesEvery    = 15 * time.Minute // rules of groups whose writes the kernel tells of
	restedEvery   = 5 * time.Minute  // who a limited group at rest is, and what is expected to hold it
	describeEvery = time.Minute      // the same of another one
	nodeEvery     = time.Minute      // the names of devices
	pacedEvery    = 5 * time.Second  // what weir's pacer holds
)

// Bounds of one reading. To ask who 512 groups are takes 20 ms; an engine lists all its containers for each
// question.
const (
	groupsMost   = 20000
	disksMost    = 1024
	describeMost = 512 // limited groups, where Options.Details bounds a reading
)

// A Watcher reads the groups of a hierarchy. Its methods may be called from one goroutine at a
// time. It needs no rights beyond those to read the cgroup files.
type Watcher struct {
	o       Options
	entries map[string]*entry // by path
	order   []*entry          // in the order of their paths; nil: it has to be made again
	open    int               // files
	notices notices
	idle    time.Duration // IdleEvery
	round   uint64
	turns   uint64
	at      time.Time // of the last reading
	disks   map[blkdev.Number]*disk
	devices map[blkdev.Number]bool // that groups did I/O on or have limits on
	others  bool                   // they may be others by now
	all     *cgroupfs.Pressure     // the host's, at the last reading

	asked    time.Time // when the pacer was
	expected shared

	unread     int
	unreadable error
}

// New makes a Watcher. Close ends its use.
func New(o Options) *Watcher {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Keep == 0 {
		o.Keep = keepable()
	}
	return &Watcher{o: o, entries: map[string]*entry{}, disks: map[blkdev.Number]*disk{}, idle: IdleEvery, notices: newNotices(o.Follow)}
}

// keepable is half of what the process may open. (Go's runtime raises the soft limit to the hard one.)
func keepable() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 256
	}
	return int(min(l.Cur/2, 2*groupsMost))
}

// Close closes the files that are open.
func (w *Watcher) Close() error {
	errs := []error{w.notices.close()}
	for _, e := range w.entries {
		errs = append(errs, w.shut(e))
	}
	return errors.Join(errs...)
}

// Sample reads all groups once. A group that cannot be read is counted in the snapshot; an error
// is returned only if the tree cannot be read at all, or ctx has ended.
func (w *Watcher) Sample(ctx context.Context) (*Snapshot, error) {
	now := w.o.Now()
	w.round++
	w.unread, w.unreadable = 0, nil
	w.heed()
	if err := w.look(namedOf(w.o.IO.Root()), nil, now, true); err != nil {
		return nil, err
	}
	w.forgetGone()
	w.sort()
	w.readDetails(now)
	w.markPaced(now)
	w.describe(ctx, now)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &Snapshot{At: now, Version: w.o.IO.Version, Watched: len(w.entries)}
	if !w.at.IsZero() {
		s.Window = now.Sub(w.at)
	}
	w.readDisks(ctx, now)
	for _, e := range w.order {
		w.failed(e.unread)
		if g := e.group(w.diskOf); g != nil {
			s.Groups = append(s.Groups, g)
		}
	}
	s.Disks = w.disksNow()
	s.Pressure = w.hostPressure(s.Window)
	s.Unread, s.Unreadable = w.unread, w.unreadable
	w.at = now
	return s, nil
}

// failed notes that something could not be read, which is not gone.
func (w *Watcher) failed(err error) {
	if err == nil || cgroupfs.IsGone(err) {
		return
	}
	w.unread++
	if w.unreadable == nil {
		w.unreadable = err
	}
}

// entry finds the entry of a group, or makes one, and reads its counters. It returns nil for a
// group that is gone or never could be read.
func (w *Watcher) entry(g named, now time.Time, moved bool) (*entry, error) {
	e, known := w.entries[g.path]
	if !known {
		if len(w.entries) >= groupsMost {
			return nil, errTooMany
		}
		e = &entry{named: g}
	}
	idle := known && !moved && !e.stirred && now.Sub(e.read) < w.idle
	if idle {
		e.rest(now)
		e.round = w.round
		return e, nil
	}
	err := w.read(e)
	if err != nil && (!known || cgroupfs.IsGone(err)) {
		return nil, errors.Join(err, w.shutNew(e, known))
	}
	e.round = w.round
	if !known {
		w.entries[g.path], w.order = e, nil
	}
	if err == nil && !e.followed {
		e.followed = true
		w.notices.watch(e) // before groups below it are listed, and its rules read
	}
	return e, err
}

// shutNew closes the files of an entry that nobody knows of.
func (w *Watcher) shutNew(e *entry, known bool) error {
	if known {
		return nil // forgetGone does
	}
	return w.shut(e)
}

var errTooMany = errors.New("watch groups: there are too many")

// read reads the counters of an entry. The files of a group that was removed and made again read
// as gone: then they are opened anew. So are, on v1, those of one that was renamed.
func (w *Watcher) read(e *entry) error {
	if e.files == nil && w.open < w.o.Keep {
		var err error
		if e.id, err = w.idOf(e); err != nil {
			return err
		}
		files, err := e.at.OpenCounters()
		if err != nil {
			return err
		}
		e.files = files
		w.open += files.Files()
	}
	if e.files == nil {
		stats, err := e.at.Stats()
		if err == nil {
			w.note(e, stats, w.o.Now())
		}
		return err
	}
	whole := e.read.IsZero() || w.o.Now().Sub(e.whole) >= wholeEvery
	stats, _, err := e.files.Read(whole)
	another := false
	if whole && err == nil && !e.told() {
		var id uint64
		id, err = w.idOf(e)
		another = err == nil && id != e.id
	}
	if another || errors.Is(err, unix.ENODEV) {
		if err := w.shut(e); err != nil {
			return err
		}
		*e = entry{named: e.named, above: e.above}
		return w.read(e)
	}
	if err != nil {
		return err
	}
	now := w.o.Now() // of this group, because to read thousands takes a while
	if whole {
		e.whole = now
	}
	w.note(e, stats, now)
	return nil
}

// shut closes the files of an entry, and ends its watch.
func (w *Watcher) shut(e *entry) error {
	w.notices.end(e)
	err := w.shutSum(e)
	if e.files != nil {
		w.open -= e.files.Files()
		err = errors.Join(err, e.files.Close())
		e.files = nil
	}
	if e.above != nil {
		e.above.shaken()
	}
	return err
}

func (w *Watcher) shutSum(e *entry) error {
	if e.sum == nil {
		return nil
	}
	w.open--
	err := e.sum.Close()
	e.sum = nil
	return err
}

// forgetGone drops the groups that the last look did not find.
func (w *Watcher) forgetGone() {
	if w.order != nil && !slices.ContainsFunc(w.order, func(e *entry) bool { return e.round != w.round }) {
		return // w.order has them all
	}
	for _, e := range w.entries {
		if e.round != w.round {
			w.drop(e)
		}
	}
}

// sort puts the groups into the order of their paths, if there are others than before.
func (w *Watcher) sort() {
	if w.order == nil {
		w.others = true
		w.order = slices.SortedFunc(maps.Values(w.entries), func(a, b *entry) int { return strings.Compare(a.path, b.path) })
	}
}

// readDetails reads more than the counters of groups: of new ones, of those that did I/O since
// the last reading, and now and then of the others; where Options.Details bounds that, of those
// first that were looked at longest ago.
func (w *Watcher) readDetails(now time.Time) {
	var due []*entry
	for _, e := range w.order {
		switch {
		case e.detailed.IsZero():
			w.detail(e)
		case e.moved || e.stirred || now.Sub(e.detailed) >= w.idle || e.watch == noWatch && now.Sub(e.detailed) >= IdleEvery:
			due = append(due, e)
		}
	}
	if w.o.Details > 0 && len(due) > w.o.Details {
		slices.SortStableFunc(due, func(a, b *entry) int { return a.detailed.Compare(b.detailed) })
		due = due[:w.o.Details]
	}
	for _, e := range due {
		w.detail(e)
	}
}

// describe asks who groups are, and what is expected to hold their limits; where Options.Details
// bounds that, of those first that were asked about longest ago.
func (w *Watcher) describe(ctx context.Context, now time.Time) {
	if w.o.Describe == nil {
		return
	}
	var ask, limited []*entry
	for _, e := range w.order {
		switch {
		case !e.unknown(now):
		case len(e.rules) > 0:
			limited = append(limited, e)
		default:
			ask = append(ask, e)
		}
	}
	if w.o.Details > 0 && len(limited) > describeMost {
		slices.SortStableFunc(limited, func(a, b *entry) int { return a.described.Compare(b.described) })
		limited = limited[:describeMost]
	}
	if ask = append(ask, limited...); len(ask) == 0 {
		return
	}
	groups := make([]Limited, len(ask))
	for i, e := range ask {
		groups[i] = e.limited()
	}
	now = w.o.Now() // what was read of them until now is no news about who they are
	known, err := w.o.Describe(ctx, groups)
	w.failed(err)
	for i, k := range known {
		if i < len(ask) {
			w.expected.share(k.Expected)
			ask[i].describe(k, now)
		}
	}
}

// hostPressure reads /proc/pressure/io.
func (w *Watcher) hostPressure(window time.Duration) *Pressure {
	text, err := os.ReadFile(filepath.Join(w.o.Root, "proc/pressure/io"))
	if err != nil { // the kernel has none
		w.all = nil
		return nil
	}
	now, err := cgroupfs.ParsePressure(strings.TrimSpace(string(text)))
	if err != nil {
		w.failed(err)
		return nil
	}
	p := pressureOf(now, w.all, window)
	w.all = &now
	return p
}
