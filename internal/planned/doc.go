// Package planned compares plans with what is in force on a host, and puts them into force: which
// targets run, which plan each has, which of its limits differ. Each front end calls it and gets
// values.
//
// A plan is the whole of a target's limits, so comparing needs no memory: the package compares the
// rules in force with the plan, and writes what differs. What it sets is on record
// (/var/lib/weir/plans, one file for each target) before the rule is written. The record is written
// without waiting for the disk: the kernel forgets rules at a boot, and a record that a power cut
// left empty counts as none. While rates change, those before are on record too. When the plan of a
// target goes, weir removes the rates that are as on record. If it goes to another name of the same
// group, as from a scope of systemd to the container in it, the record goes there too, and the rules
// stay (heirs).
//
// A group that was just born gets its rules from PutFirst, which waits for nobody: the record of that
// is in /run until the rules are in force. Put does the rest. BeginGiven does the same for a target that
// somebody else has found and waits for, where the kernel alone holds what it writes.
//
// A record has two more purposes. It says which disks the processes of a group had mounted: they can hide one from weir,
// and write to it all the same, so a limit on all that they have mounted stays there (seen). And it says which limits come
// from what weird alone is told. As long as weird has not read that again, they stay, and are not raised
// (plans.Choice.Unread). So a record is brought up to date also where all rates are in force (amend).
//
// Where two kinds name one group, the target of the earlier kind has it. The other one leaves its limits alone, by their
// record, as long as it cannot be told what that target is to have (yield).
package planned

import (
	"context"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// A Manager does it on one host, with one configuration.
type Manager struct {
	Host   *host.Host
	Config *plans.Config
	Live   Live // nil: the annotations of the container runtime count
	// Alone says that no agent asks. What weird has set for pods, by what it alone is told of them, stays
	// as it is: see Kept.
	Alone bool

	// GiveWay is called before each target of a look at many, and may wait; nil: nobody is.
	GiveWay func(context.Context)

	deciding *place.Host // for the many targets of one look; nil: there is one target
	// owners lists the targets of a kind; nil: Host.List.
	owners func(ctx context.Context, kind string, need targets.Need, ids ...string) ([]targets.Listed, error)
}

// forMany is the same for a look at many targets: it reads once what is the same for all.
func (m Manager) forMany() Manager {
	m.Host = m.Host.ForMany()
	deciding := m.Host.Deciding().ForMany()
	if jobs, err := m.Host.Jobs(); err == nil { // else each target says what is wrong
		deciding.Jobs = jobs
	}
	m.deciding = &deciding
	return m
}

// on is the same for the host where a target was found.
func (m Manager) on(h *host.Host) Manager {
	m.Host, m.deciding = h, nil
	return m
}

func (m Manager) limits() limiting.Manager { return limiting.Manager{Host: m.Host} }

// A State says how a target stands to its plan.
type State string

// The states.
const (
	InForce State = "in-force" // its limits are those of the plan
	Differs State = "differs"  // they are not
	Changed State = "changed"  // they are now
	NoPlan  State = "no-plan"  // it has none, and weir leaves its limits alone
	Failed  State = "failed"   // it could not be limited, or looked at
	Stopped State = "stopped"  // it does not run
	Gone    State = "gone"     // it is not there any more
	Kept    State = "kept"     // weird has set its limits by what it alone is told, and keeps them
)

// A Target is a target with its plan.
type Target struct {
	Name   string // as a user spells it
	ID     string // its owner's for it: a pod's UID, a container's id; empty: it has none
	Choice plans.Choice
	State  State
	Err    error    // why it failed; of limits that are in force, what is wrong with their record (*RecordError); nil: nothing
	Rows   []Device // that its plan names, or that it has limits on
	// Unpaced says that its limits are in force, and that weir's pacer is to hold its buffered
	// writes and does not.
	Unpaced bool
	// Unheld says that without weir's pacer, which does not have its group yet, nothing holds what it writes
	// through the page cache.
	Unheld bool
	// Begun says that its limits are in force, and nothing else of what Put does: its group was just
	// born (PutFirst).
	Begun bool
	// Unfound are the volumes that its annotations name, and that none of its containers has mounted
	// yet, as far as can be told.
	Unfound []string
	Result  limiting.Result  // of what was changed
	Preview limiting.Preview // of what would be, in a dry run

	host   *host.Host      // where it was found: its owner's socket can be another one than usual
	found  *targets.Target // as it was found; nil: it has no group
	group  *cgroupfs.Group // of found
	id     uint64          // of the group then, if something is to be done; 0: nothing is, or it has ended
	seen   *seen           // what its processes have mounted, and had; nil: it has no group
	record *record         // what weir has put into force for it; nil: nothing
	key    string          // of its record
	given  *targets.Target // it was found before; nil: its name leads to it
	heir   *Target         // whose the limits are by a plan, of one without a plan; nil: nobody's
}

// A Device is a device with the limit on it, and the one that the plan has. All four rates are
// set: a plan is the whole of a target's limits.
type Device struct {
	blkdev.Device
	Now, Plan limit.Limit
}

// Change is the rates that differ, as they are to be.
func (d Device) Change() (l limit.Limit) {
	for _, k := range limit.Keys {
		if d.Now.Get(k) != d.Plan.Get(k) {
			l = l.With(k, d.Plan.Get(k))
		}
	}
	return l
}

// differs reports whether anything has to be done.
func (t Target) differs() bool {
	for _, d := range t.Rows {
		if !d.Change().IsZero() {
			return true
		}
	}
	return t.Unpaced || t.Begun
}
