package planned

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// heirMost bounds how long Put waits for another weir to have done with targets of the heir's kind.
const heirMost = time.Second

// heirs finds the heir of a target that has no plan any more: the target of another kind that has the same group, and has a
// plan. A container is a scope of systemd too, and a plan can move from one of these names to the other. The limits stay
// then, and the record of them becomes the heir's.
type heirs struct {
	m     Manager
	lists map[string]listing // of the kinds that were asked
	// records reads what is on record, once. One that cannot be read is told of elsewhere.
	records func() map[string]*record
	// What is looked for once; see yield.
	ofKind map[string][]*record      // those of a kind
	keys   map[string]map[string]int // where a kind lists its targets, by their keys
	places map[string]whereabouts    // of targets, by their keys
	slow   map[string]error          // kinds that took long to tell of one
}

func newHeirs(m Manager) heirs {
	return heirs{m: m, lists: map[string]listing{}, ofKind: map[string][]*record{}, keys: map[string]map[string]int{}, places: map[string]whereabouts{}, slow: map[string]error{},
		records: sync.OnceValue(func() map[string]*record {
			all, _ := recorded(m.Host.Root)
			return all
		})}
}

// A listing is what a kind has answered.
type listing struct {
	all []targets.Listed
	err error
}

// settle notes the heir of a target. As long as it cannot be told whether there is one, the target's limits stay too.
func (h heirs) settle(ctx context.Context, t *Target) {
	if !t.Choice.IsNone() || t.record == nil || t.found == nil || t.State != Differs {
		return
	}
	heir, err := h.of(ctx, *t)
	if err != nil {
		t.State, t.Err = Failed, fmt.Errorf("it has no plan any more, and keeps its limits as long as weir cannot tell whether its cgroup has one by another name: %w", err)
		return
	}
	if t.heir = heir; heir == nil {
		return
	}
	t.State = NoPlan
	for i := range t.Rows {
		t.Rows[i].Plan = t.Rows[i].Now
	}
}

// of finds the heir of a target; nil: it has none.
func (h heirs) of(ctx context.Context, t Target) (*Target, error) {
	for _, kind := range kinds {
		if kind == kindOf(t.key) || !h.m.Config.Needs(kind) || !mayHave(kind, *t.found) {
			continue
		}
		list := h.list(ctx, kind)
		if list.err != nil {
			return nil, list.err
		}
		if !slices.ContainsFunc(list.all, func(l targets.Listed) bool { return has(l, *t.found) }) { // another daemon of the kind may have it
			if err := h.isDown(ctx, kind, *t.found); err != nil {
				return nil, err
			}
		}
		for _, l := range list.all {
			if !has(l, *t.found) {
				continue
			}
			if l.Unread != nil {
				return nil, l.Unread
			}
			one := Target{Name: l.String(), Choice: h.m.ChoiceOf(l), State: NoPlan, host: h.m.Host, key: keyOf(l)}
			if one.Choice.IsNone() && one.Choice.Unread != (plans.Unread{}) {
				return nil, fmt.Errorf("%s: it is not known now what its pod asks for", l)
			}
			if one.Choice.IsNone() {
				continue
			}
			its, err := h.m.Host.Target(ctx, one.key)
			if isNowhere(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if one.found, one.group = &its, &its.Group; one.Path() == t.Path() {
				return &one, nil
			}
		}
	}
	return nil, nil
}

// list asks a kind, once.
func (h heirs) list(ctx context.Context, kind string) listing {
	list, asked := h.lists[kind]
	if !asked {
		h.m.giveWay(ctx)
		list.all, list.err = h.m.list(ctx, kind)
		h.lists[kind] = list
	}
	return list
}

// isDown says that a container's daemon does not answer, while the container runs: it comes back, and tells then which plan the
// container has. (Podman's containers have no daemon.)
func (h heirs) isDown(ctx context.Context, kind string, t targets.Target) error {
	var name string
	switch path := t.Group.Path(); kind {
	case "docker":
		_, name, _ = targets.ContainerOf(t.Group)
	case "containerd":
		if id := targets.CalledAfter(path); targets.IsContainerID(id) {
			name = "k8s.io/" + id
		}
	case "pod":
		name, _ = targets.PodOf(path)
	}
	if name == "" {
		return nil
	}
	_, err := h.m.Host.Target(ctx, kind+":"+name)
	var none *targets.NoKindError
	if errors.As(err, &none) || kind != "docker" && err != nil && !isNowhere(err) {
		return err
	}
	return nil
}

// isNowhere reports whether an error says that a target has no group now.
func isNowhere(err error) bool {
	var none *targets.NotFound
	var stopped *targets.StoppedError
	var ungrouped targets.Ungrouped
	return errors.As(err, &none) || errors.As(err, &stopped) || asUngrouped(err, &ungrouped)
}

// mayHave reports whether the group of a target can be one of another kind too: what cannot is not asked for, as its daemon
// may hang.
func mayHave(kind string, t targets.Target) bool {
	engine, _, is := targets.ContainerOf(t.Group)
	switch kind {
	case "unit":
		return t.Owner.Unit != ""
	case "pod":
		_, pod := targets.PodOf(t.Group.Path())
		return pod
	case "vm":
		return targets.OwnerOf(t.Group, true).Kind == "libvirt"
	case "containerd":
		ending := path.Ext(t.Group.Path())
		return !is && ending != ".service" && ending != ".slice" && !isMonitor(t.Group.Path())
	case "podman":
		return is && engine == kind && !isOuter(t.Group)
	}
	return is && engine == kind
}

// isMonitor reports whether a group is that of the monitor which CRI-O and Podman start beside a container.
func isMonitor(group string) bool {
	id := targets.CalledAfter(group)
	return targets.IsContainerID(id) && strings.HasSuffix(strings.TrimSuffix(path.Base(group), ".scope"), "-conmon-"+id)
}

// isOuter reports whether a group is the one above that of a Podman container: crun puts the container into a group of its
// own below.
func isOuter(g cgroupfs.Group) bool {
	below, err := g.Child(targets.PodmanInner)
	if err != nil || targets.IsInner(g.Path()) {
		return false
	}
	there, err := below.Exists()
	return err == nil && there
}

// has reports whether a target that is listed has the group of another one, by its name.
func has(l targets.Listed, t targets.Target) bool {
	switch l.Kind {
	case "unit":
		return l.Name == t.Owner.Unit
	case "pod":
		return targets.IsPodOf(t.Group.Path(), l.UID)
	case "vm":
		return true // its name does not lead to its group
	case "containerd":
		return targets.IsCalledAfter(t.Group.Path(), l.ID)
	}
	_, id, is := targets.ContainerOf(t.Group)
	return is && l.ID == id
}

// handOver has the heir's record have what is in force of a target's, and removes that. No rule changes.
func (m Manager) handOver(t *Target, dry bool) error {
	next, err := m.inherited(t)
	if err != nil {
		return err
	}
	switch {
	case next == nil, dry && t.heir.State == Differs: // its own change has put it on record by then
	case dry:
		step, err := m.recordStep(next)
		if err != nil {
			return err
		}
		t.Preview.Steps = append(t.Preview.Steps, step)
	default:
		if err := next.save(m.Host.Root); err != nil {
			return err
		}
	}
	return m.unrecord(t, dry)
}

// inherited is the record of a target's heir with what is in force of the target's; nil: it stays as it is.
func (m Manager) inherited(t *Target) (*record, error) {
	rules, err := t.group.RulesIfAny()
	if err != nil {
		return nil, ifThere(err)
	}
	left := inForce(rules, t.record.Limits)
	was, err := recordFor(m.Host.Root, t.heir.key, t.heir.Name)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	if was == nil {
		was = m.recordOf(*t.heir)
		was.Limits, was.Group = nil, t.record.Group // what was done for the group is done
	}
	next := was.with(&record{Limits: left})
	if next == was {
		return nil, nil
	}
	return next, nil
}
