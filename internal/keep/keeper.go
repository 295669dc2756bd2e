package keep

import (
	"context"
	"strings"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A Keeper has the limits of one target set again after a restart.
type Keeper interface {
	// By names the keeper for people: "systemd", "Docker"; empty: nobody keeps the limits.
	By() string
	// May returns why nothing keeps the limits; nil: the keeper does.
	May(ctx context.Context) error
	// Keep has wanted limits kept. What belongs to the same change as the rules goes into the
	// plan; the rest are actions.
	Keep(ctx context.Context, w Wanted, plan *hold.Plan) (Edit, error)
	// Forget has limits on these devices kept no longer; none: all limits. The plan removes the
	// rules in force. They need not be known yet: the actions look at the plan when they are done
	// or described.
	Forget(ctx context.Context, only []blkdev.Number, plan *hold.Plan) (Edit, error)
	// Lasts tells how long a limit lasts that is in force by a plan, if that may be unexpected.
	// kept says that it was to be kept.
	Lasts(plan hold.Plan, kept bool) []note.Note
	// Paces says whether the pacer holds the target after its next start.
	Paces() Paces
}

// Wanted is what a keeper is to keep.
type Wanted struct {
	Asked  []limit.Asked    // as the user spelled the places
	Hold   limit.Hold       // what is to hold buffered writes, where that was named
	Places []place.Expected // where the limits go
}

// A Refused error says why nothing keeps the limits of a target. A front end begins the message
// with what was asked.
type Refused struct {
	Target string
	Kind   fault.Class
	Why    string
	Remedy fault.Remedy
}

func (e *Refused) Error() string { return "keep the limit of " + e.Target + ": " + e.Why }

// Class is its kind.
func (e *Refused) Class() fault.Class { return e.Kind }

// An Edit is what has to be done besides the plan.
type Edit struct {
	Before []Action // while the rules are as they were
	After  []Action // once the plan is in force
	Notes  []note.Note
}

// Paces says whether the pacer holds a target after its next start.
type Paces int

// What becomes of it.
const (
	PaceLost    Paces = iota // nothing starts it
	PaceFollows              // it goes on until the next boot
	PaceStarts               // the keeper starts it again
)

// Of returns the keeper of a target's limits in hierarchies of a version.
func Of(h *host.Host, t targets.Target, version cgroupfs.Version) Keeper {
	b := base{h, t, version}
	switch {
	case b.scoped():
		return scope{b}
	case b.engineUpdates():
		return engineKeeper{b}
	case t.Lasting != "":
		return record{b}
	case t.Kind == "vm":
		return libvirt{b}
	}
	return b.byUnit()
}

// byUnit is the keeper of a target's unit.
func (b base) byUnit() Keeper {
	if b.version == cgroupfs.V2 && b.t.Owner.Unit != "" {
		return unitKeeper{b}
	}
	if full, err := systemd.FullName(b.t.Owner.Unit); err == nil && full == b.t.Owner.Unit && b.version == cgroupfs.V1 {
		return dropIn{b}
	}
	return nobody{b}
}

// base is what all keepers have.
type base struct {
	h       *host.Host
	t       targets.Target
	version cgroupfs.Version
}

func (b base) Paces() Paces { return PaceLost }

// scoped reports whether a target is in a scope that is made with the same name at each of its
// starts, as a container's is of its id, so that a drop-in can set its limits.
func (b base) scoped() bool {
	return (b.t.Kind == "docker" || b.t.Kind == "podman") && b.version == cgroupfs.V2 && strings.HasSuffix(b.t.Owner.Unit, ".scope") && !b.engineUpdates()
}

// engineUpdates reports whether a container's engine keeps limits for it.
func (b base) engineUpdates() bool { return b.t.Record != nil && b.t.Record.Updates }

// recorded reports whether weir itself keeps a target's limits: its owner starts it again by the
// same name, and nothing else sets limits then.
func (b base) recorded() bool { return b.t.Lasting != "" && !b.scoped() && !b.engineUpdates() }

// WithoutEngine is a target whose engine is not to keep limits, because it starts no pacer.
func WithoutEngine(t targets.Target) targets.Target {
	if t.Record != nil && t.Record.Updates {
		r := *t.Record
		r.Updates = false
		t.Record = &r
	}
	return t
}

// nobody keeps the limits of what does not start again.
type nobody struct{ base }

func (nobody) By() string                                               { return "" }
func (k nobody) May(context.Context) error                              { return k.mayUnit() }
func (k nobody) Keep(context.Context, Wanted, *hold.Plan) (Edit, error) { return Edit{}, k.mayUnit() }
func (nobody) Forget(context.Context, []blkdev.Number, *hold.Plan) (Edit, error) {
	return Edit{}, nil
}
func (k nobody) Lasts(plan hold.Plan, _ bool) []note.Note { return k.lost(plan) }
