package source

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/internal/base/haste"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

const (
	reopenLeast = 100 * time.Millisecond
	reopenMost  = time.Minute
	// lookAgain is how often groups without a watch are looked for.
	lookAgain = 10 * time.Second
)

// ruleFiles hold the limits of a group, on v2 and v1.
var ruleFiles = []string{"io.max", "blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device",
	"blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"}

// lookLater is when a kind is looked at once more after a group was born, if nothing but the tree
// tells of it: its daemon may list the target only after its group is there.
var lookLater = []time.Duration{time.Second, 5 * time.Second}

// A Tree tells of groups that are born, end, or have their limits written.
type Tree struct {
	Options Options
	// Changed is told of a target by its kind and name, "": of all of a kind, or of all kinds.
	Changed func(kind, name string)
	// Soon is told instead where no limit waits for the look; nil: Changed is.
	Soon func(kind, name string)
	// Written is told instead where somebody has written the rules of a group; nil: Changed is.
	Written func(kind, name, group string)
	// Lost is told that somebody may have written rules of any group without an event; nil: Changed is, of all kinds.
	Lost   func()
	Log    *slog.Logger
	Births *Births // gives newborn groups their rules; nil: nobody does

	resync time.Duration // how often all groups are compared; 0: reconcile.ResyncTime

	losses sparing // of calls to lost

	mu     sync.Mutex
	counts map[string]tree.Stats // of each hierarchy that is followed, by its mount point
	missed uint64                // by hierarchies that were followed before
	failed error                 // why they are not followed; nil: they are, or not yet
	later  map[laterLook]*time.Timer
	begun  chan struct{} // see Begun
	slow   sync.Once     // the log has why threads are not hurried
}

// Begun is closed once Run has told of all that was there before, and tells of what comes after that, or has failed to.
func (t *Tree) Begun() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun == nil {
		t.begun = make(chan struct{})
	}
	return t.begun
}

// laterMost bounds the looks that are due later. With more, all of a kind is looked at.
const laterMost = 512

type laterLook struct {
	of    named
	after time.Duration
}

// Run follows the hierarchies until the context ends.
func (t *Tree) Run(ctx context.Context) {
	defer t.endLater()
	begun := t.beginOnce()
	for wait := reopenLeast; ctx.Err() == nil; wait = min(2*wait, reopenMost) {
		began := time.Now()
		err := t.run(ctx, func() {
			t.follows()
			begun()
		})
		if ctx.Err() == nil && t.fails(err) {
			t.Changed("", "") // from now on all is compared more often
		}
		begun()
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > reopenMost {
			wait = reopenLeast
		}
		t.Log.Warn("weird cannot watch cgroups", "error", err, "again_in", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// beginOnce closes Begun when it is called first.
func (t *Tree) beginOnce() func() {
	t.Begun()
	return sync.OnceFunc(func() { close(t.begun) })
}

func (t *Tree) run(ctx context.Context, begun func()) error {
	h, err := t.Options.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	io, err := h.IO()
	if err != nil {
		return err
	}
	follow := []*cgroupfs.Hierarchy{io}
	if named := h.FS.With("name=systemd"); io.Version == cgroupfs.V1 && named != nil {
		follow = append(follow, named) // on v1 a unit has a group there, and often none with blkio
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, len(follow))
	var opening atomic.Int32
	opening.Store(int32(len(follow)))
	for _, one := range follow {
		go func() {
			failed <- t.follow(ctx, one, h.SystemdRuns(), func() {
				if opening.Add(-1) == 0 {
					begun()
				}
			})
		}()
	}
	err = <-failed
	stop()
	for range follow[1:] {
		if other := <-failed; err == nil {
			err = other
		}
	}
	return err
}

// follow follows one hierarchy. It calls begun once it misses nothing any more.
func (t *Tree) follow(ctx context.Context, h *cgroupfs.Hierarchy, systemdRuns bool, begun func()) error {
	var thread haste.Thread
	one, err := tree.Open(h.Root().Dir(), tree.Options{Files: ruleFiles, Each: thread.Pace})
	if err != nil {
		return err
	}
	defer one.Close()
	if t.serves(h) {
		t.hurry(&thread)
		defer thread.End()
	}
	t.Changed("", "") // what was there before is looked at by everybody
	begun()
	first, limited := len(one.Groups()) > 0, false
	for compared := time.Now(); ; {
		until := cmp.Or(t.resync, reconcile.ResyncTime)
		if one.Limit() != nil {
			until = lookAgain
		}
		// The time counts from the last comparison: events, however many, do not put it off.
		bounded, cancel := context.WithDeadline(ctx, compared.Add(until))
		events, err := one.Next(bounded)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			events, err = one.Resync()
			compared = time.Now()
		}
		if err != nil {
			return err
		}
		if limit := one.Limit(); limit != nil && !limited {
			t.Log.Warn("weird learns late of changes in some cgroups", "error", limit)
		}
		limited = one.Limit() != nil
		t.note(h, one.Stats())
		if !first { // who was told of all has those
			t.tell(h, events, systemdRuns)
		}
		first = false
		thread.Pace()
	}
}

// hurry has the calling goroutine's thread run at once when a group is born. Others wait for a processor on a busy machine,
// for 10 ms and more, and a container's program may be faster.
func (t *Tree) hurry(thread *haste.Thread) {
	if err := thread.Begin(); err != nil {
		t.slow.Do(func() {
			t.Log.Warn("on a busy machine new containers may get their limits some milliseconds late", "error", err)
		})
	}
}

// tell tells whose groups have changed.
func (t *Tree) tell(h *cgroupfs.Hierarchy, events []tree.Event, systemdRuns bool) {
	for _, e := range events {
		if e.Kind == tree.Lost {
			t.losses.ask(t.lost)
			continue
		}
		g, err := h.Group(path.Join(h.MountRoot, e.Path))
		if err != nil || g.IsRoot() || g.IsCell() {
			continue
		}
		names := namesOf(g, systemdRuns)
		tells := e.Kind == tree.Born && t.serves(h) && isServed(g, names)
		if tells {
			t.Births.Born(g.Path(), names)
		}
		for _, n := range names {
			// A user may make and remove a group with a container's id in its name. Whether the container
			// has ended, its engine says.
			if e.Kind == tree.Ended && n.kind != "docker" && n.kind != "podman" && !isPartOf(g, n) {
				t.Options.Ended(n.kind, n.name)
			}
			asked := t.Options.isAsked(n)
			switch {
			case tells:
			case e.Kind == tree.Written && t.Births != nil && t.Births.WillTell(g.Path()):
			case e.Kind == tree.Written && t.Written != nil:
				t.Written(n.kind, n.name, g.Path())
			case e.Kind == tree.Ended, asked: // another group of a target that ends may go on
				t.soon(n.kind, n.name)
			default:
				t.Changed(n.kind, n.name)
			}
			if e.Kind == tree.Born && (n.name == "" || n.kind == "pod" || n.kind == "containerd") {
				t.tellLater(n, asked)
			}
		}
	}
}

// lost tells that writes of rules may have been missed.
func (t *Tree) lost() {
	if t.Lost == nil {
		t.Changed("", "")
		return
	}
	t.Lost()
}

// soon tells of a target that no limit waits for.
func (t *Tree) soon(kind, name string) {
	if t.Soon == nil {
		t.Changed(kind, name)
		return
	}
	t.Soon(kind, name)
}

// serves reports whether newborn groups of a hierarchy get their rules from Births.
func (t *Tree) serves(h *cgroupfs.Hierarchy) bool {
	return t.Births != nil && (h.Version == cgroupfs.V2 || h.Has("blkio"))
}

// isServed reports whether Births can know whose group one is. Others take none of its time: any user of a delegated
// group can make thousands.
func isServed(g cgroupfs.Group, names []named) bool {
	_, _, is := targets.ContainerOf(g)
	return is || slices.ContainsFunc(names, func(n named) bool { return n.kind == "unit" })
}

// isPartOf reports whether a group is a container's, and its target the pod that this one is in.
func isPartOf(g cgroupfs.Group, of named) bool {
	uid, is := targets.PodOf(g.Path())
	return of.kind == "pod" && of.name != "" && (!is || uid != of.name)
}

// tellLater tells of a target again, or of a kind, once for all births until then. Where a runtime asks before each start,
// one look is enough: another runtime may have made the target, or it is what holds a pod, of which none asks.
func (t *Tree) tellLater(of named, asked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.later == nil {
		t.later = map[laterLook]*time.Timer{}
	}
	if len(t.later) >= laterMost {
		of.name = ""
	}
	all, tell := lookLater, t.Changed
	if asked {
		all, tell = lookLater[len(lookLater)-1:], t.soon
	}
	for _, after := range all {
		look := laterLook{of, after}
		if t.later[look] == nil {
			t.later[look] = time.AfterFunc(after, func() {
				t.mu.Lock()
				delete(t.later, look)
				t.mu.Unlock()
				tell(of.kind, of.name)
			})
		}
	}
}

// endLater ends what would be told later.
func (t *Tree) endLater() {
	t.losses.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, timer := range t.later {
		timer.Stop()
	}
}

type named struct{ kind, name string }

// namesOf are the targets whose group one may be.
func namesOf(g cgroupfs.Group, systemdRuns bool) (all []named) {
	o := targets.OwnerOf(g, systemdRuns)
	if o.Unit != "" {
		all = append(all, named{"unit", o.Unit})
	}
	switch o.Kind {
	case "docker", "podman":
		return append(all, named{o.Kind, o.Name})
	case "libvirt":
		return append(all, named{"vm", ""})
	case "unknown", "systemd":
		if strings.Contains(g.Path(), "kubepods") {
			if uid, is := targets.PodOf(g.Path()); is {
				return append(all, named{"pod", uid})
			}
			uid, inPod := targets.PodOf(g.Parent().Path())
			if id := targets.CalledAfter(g.Path()); inPod && targets.IsContainerID(id) {
				return append(all, named{"pod", uid}, named{"containerd", id})
			}
			return append(all, named{"pod", ""}, named{"containerd", ""})
		}
		if o.Kind == "unknown" {
			return append(all, named{"containerd", ""})
		}
	}
	return all
}
