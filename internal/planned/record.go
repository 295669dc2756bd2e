package planned

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets"
)

// records is where weir notes what it has put into force for plans, below the host's root: so that
// it can take that away again, and nothing else.
const records = "/var/lib/weir/plans"

// A record is what weir has put into force for one target. The kernel forgets that at a boot, so a
// record need not outlive a power cut, and nobody waits for the disk: one that was lost is no record.
type record struct {
	Target string       `json:"target"`         // docker:WHOLE-ID, pod:UID
	Name   string       `json:"name"`           // as a user spells it
	Host   string       `json:"host,omitempty"` // the owner's socket, if it is not the usual one
	Plan   string       `json:"plan"`
	Limits []deviceRule `json:"limits"`
	// Group is the inode of the group that all was done for. Another group of the target has the
	// rules at most (PutFirst), and the rest is still to be done; 0: every group. nil: weir has not
	// noted it, and all was done.
	Group *uint64 `json:"group,omitempty"`
	// Agent says that the limits come from what weird alone is told: a pod's annotations, which are asked for
	// where weird serves a container runtime, or what Kubernetes' API server knows.
	Agent bool `json:"agent,omitempty"`
	// Seen is what the target's processes had mounted; nil: an older weir did not note it, or nobody has looked.
	Seen *seen `json:"seen,omitempty"`
	// Unread is what had not been read of the target by whoever wrote this without knowing what is on record: see inherit.
	Unread plans.Unread `json:"unread,omitzero"`
	// At is when all this was put on record, or when the newborn group was given its rules; zero: an older weir
	// did it.
	At moment `json:"at,omitzero"`

	older string // the target by which an older weir has saved it; empty: it goes by Target
}

type deviceRule struct {
	Device blkdev.Number `json:"device"`
	Limit  limit.Limit   `json:"limit"`
}

// recordOf is the record of a target's plan.
func (m Manager) recordOf(t Target) *record {
	r := &record{Target: t.key, Name: t.Name, Host: m.Host.Socket(kindOf(t.key)), Plan: t.Choice.Name()}
	for _, d := range t.Rows {
		if d.Plan.Bounds() {
			r.Limits = append(r.Limits, deviceRule{d.Number, d.Plan.Bound()})
		}
	}
	kind := kindOf(t.key)
	r.Agent = (m.Live != nil || m.Config.Annotated) && (kind == "pod" || kind == "containerd") && t.Choice.IsOwn() ||
		len(t.record.keptBy(&t)) > 0
	if r.Seen = t.seen; t.record != nil {
		r.older = t.record.older
	}
	if t.group != nil {
		if id, err := t.group.ID(); err == nil { // else it has ended
			r.Group = &id
		}
	}
	return r
}

// has reports whether weir has put a rate into force.
func (r *record) has(dev blkdev.Number, k limit.Key, n uint64) bool {
	if r == nil {
		return false
	}
	for _, one := range r.Limits {
		if its, bound := one.Limit.Get(k).Number(); bound && one.Device == dev && its == n {
			return true
		}
	}
	return false
}

// hasAll reports whether weir has put all rates of a rule into force.
func (r *record) hasAll(d deviceRule) bool {
	for _, k := range limit.Keys {
		if n, bound := d.Limit.Get(k).Number(); bound && !r.has(d.Device, k, n) {
			return false
		}
	}
	return true
}

// with is a record that has the rates of an earlier one too; the same record, if there are no others.
func (r *record) with(earlier *record) *record {
	if earlier == nil {
		return r
	}
	both := *r
	both.Limits = slices.Clip(both.Limits)
	for _, d := range earlier.Limits {
		if !both.hasAll(d) {
			both.Limits = append(both.Limits, d)
		}
	}
	if len(both.Limits) == len(r.Limits) {
		return r
	}
	return &both
}

// inForce are the rates of limits that rules have.
func inForce(rules []cgroupfs.Rule, limits []deviceRule) (all []deviceRule) {
	for _, d := range limits {
		var its limit.Limit
		for _, r := range rules {
			for _, k := range limit.Keys {
				if _, bound := d.Limit.Get(k).Number(); bound && r.Device == d.Device && r.Limit.Get(k) == d.Limit.Get(k) {
					its = its.With(k, d.Limit.Get(k))
				}
			}
		}
		if its.Bounds() {
			all = append(all, deviceRule{d.Device, its})
		}
	}
	return all
}

// kept are the limits of a record that stay, and are not raised, as long as something of the target has not been read.
func (r *record) kept(u plans.Unread) (all []deviceRule) {
	switch {
	case r == nil || !r.Agent:
		return nil
	case u.Own:
		return r.Limits
	case !u.Volumes:
		return nil
	}
	for _, d := range r.Limits {
		if r.Seen == nil || r.Seen.hasDrivers(d.Device) { // an older weir did not note which disk a volume is on
			all = append(all, d)
		}
	}
	return all
}

// inherit adds what was on record of the same target before, as far as it counts still: whoever has made this record has
// waited for no disk.
func (r *record) inherit(was *record) {
	unread := r.Unread
	r.Unread = plans.Unread{}
	if was == nil || was.At.Boot != r.At.Boot || was.older != "" && (was.Group == nil || r.Seen == nil || *was.Group != r.Seen.Group) {
		return
	}
	if kept := was.kept(unread); len(kept) > 0 { // of two rates of one device the lower one counts until all is read
		r.Agent, r.Limits = true, r.with(&record{Limits: kept}).Limits
	}
	if r.Seen != nil {
		r.Seen.add(was.seenIn(r.Seen.Group, r.Plan, r.At.Boot))
	}
}

// as is the record that an older weir has saved for a pod by its name, for the pod by its UID.
func (r *record) as(target string) *record {
	if r == nil {
		return nil
	}
	its := *r
	its.Target, its.older = target, r.Target
	return &its
}

// recordFor is recordOf for a target that has a name too, by which an older weir may have saved it.
func recordFor(root, target, name string) (*record, error) {
	r, err := recordOf(root, target)
	if r != nil || err != nil || kindOf(target) != "pod" || target == name {
		return r, err
	}
	r, err = recordOf(root, name)
	return r.as(target), err
}

// take takes a target's record out of those that are left. One that an older weir has saved by the name of a pod is no
// other target's.
func take(left map[string]*record, l targets.Listed) *record {
	key, name := keyOf(l), l.String()
	r := left[key]
	delete(left, key)
	if l.Kind == "pod" && key != name {
		if r == nil {
			r = left[name].as(key)
		}
		delete(left, name)
	}
	return r
}

// recordOf reads one target's record; nil: it has none.
func recordOf(root, target string) (*record, error) {
	r, err := storeOf(root).Read(state.FileName(target))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("limits set for %s: %w", target, err)
	}
	return &r, nil
}

// SetFor returns what tells the limits that weir has put into force for a target because a plan has them: they are
// put into force again when the target starts. Of a target without a permanent name, or whose record cannot be
// read, none are known.
func SetFor(h *host.Host) func(targets.Target) []cgroupfs.Rule {
	return func(t targets.Target) (rules []cgroupfs.Rule) {
		if t.Lasting == "" {
			return nil
		}
		r, err := recordOf(h.Root, t.Lasting)
		if err != nil || r == nil {
			return nil
		}
		for _, l := range r.Limits {
			rules = append(rules, cgroupfs.Rule{Device: l.Device, Limit: l.Limit})
		}
		return rules
	}
}

// isRecorded reports whether a target of a kind may be on record.
func isRecorded(root, kind string) bool {
	entries, err := os.ReadDir(filepath.Join(root, records))
	prefix := fileOf(kind + ":")
	return err != nil && !errors.Is(err, fs.ErrNotExist) ||
		slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), strings.TrimSuffix(prefix, state.Ready)) })
}

// is reports whether a record says the same as another.
func (r *record) is(other *record) bool {
	return r != nil && r.Target == other.Target && r.Name == other.Name && r.Host == other.Host && r.Plan == other.Plan && r.Agent == other.Agent && slices.Equal(r.Limits, other.Limits) && r.Seen.is(other.Seen) &&
		(r.Group == nil) == (other.Group == nil) && (r.Group == nil || *r.Group == *other.Group)
}

// agrees reports whether a record says the same as another, maybe of another group of the target, which has other mounts.
func (r *record) agrees(other *record) bool {
	if r == nil || other == nil {
		return r == other
	}
	same := *other
	same.Group, same.Seen = r.Group, r.Seen
	return r.is(&same)
}

// isBegun reports whether a group has the rules at most of what a record has.
func (r *record) isBegun(g cgroupfs.Group) bool {
	if r == nil || r.Group == nil {
		return false
	}
	id, err := g.ID()
	return err == nil && id != *r.Group
}

// storeOf is the directory of a host's records.
func storeOf(root string) state.Store[record] {
	return state.Store[record]{
		Folder:  state.Folder{Dir: filepath.Join(root, records), Mode: 0o700},
		Name:    func(r record) string { return state.FileName(r.Target) },
		ForBoot: true,
	}
}

// kindOf is the kind of a record's target.
func kindOf(target string) string {
	kind, _, _ := strings.Cut(target, ":")
	return kind
}

func sorted(all map[string]*record) []string { return slices.Sorted(maps.Keys(all)) }

func fileOf(target string) string { return state.FileName(target) + state.Ready }

// recorded reads all records. A record that cannot be read is an error beside the others.
func recorded(root string) (map[string]*record, error) {
	all, err := storeOf(root).List(state.Ready)
	if err != nil {
		err = fmt.Errorf("limits set for plans: %w", err)
	}
	of := make(map[string]*record, len(all))
	for i := range all {
		of[all[i].Target] = &all[i]
	}
	return of, err
}

// lock keeps other weirs, and other goroutines of this one, from applying plans to targets of some
// kinds. Each kind has a lock of its own, because its owner may be asked under it, and may hang. They
// are taken in the order of Kinds, so that no two weirs wait for each other. A copy's records are
// nobody else's.
func lock(ctx context.Context, h *host.Host, of ...string) (unlock func(), err error) {
	if !h.IsOwn() {
		return func() {}, nil
	}
	var held []*state.Lock
	unlock = func() {
		for _, l := range held {
			l.Unlock()
		}
	}
	for _, kind := range kinds {
		if !slices.Contains(of, kind) {
			continue
		}
		l, err := h.State.Wait(ctx, records+"/"+kind, "the plans in force for "+kind+" targets", state.LockMost)
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, l)
	}
	return unlock, nil
}

// save puts a record on record as it is from now on.
func (r *record) save(root string) error {
	its := *r
	its.At = now(root)
	return its.saveOf(root)
}

// saveOf puts a record on record as it was at its own moment.
func (r *record) saveOf(root string) error {
	if err := storeOf(root).Make(); err != nil {
		return err
	}
	if err := storeOf(root).Save(*r, state.Ready); err != nil {
		return err
	}
	return r.forgetOlder(root)
}

// forget removes a record.
func (r *record) forget(root string) error {
	return errors.Join(storeOf(root).Forget(state.FileName(r.Target)), r.forgetOlder(root))
}

// forgetOlder removes what an older weir has saved, once the record goes by its target.
func (r *record) forgetOlder(root string) error {
	if r.older == "" {
		return nil
	}
	return storeOf(root).Forget(state.FileName(r.older))
}
