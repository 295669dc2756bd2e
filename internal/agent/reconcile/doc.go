// Package reconcile keeps limits as plans want them. A Core decides, purely: what a target is to
// have and what is in force → what is to be done, when, and when to leave it alone. A Loop has
// sources tell what has changed, asks the Core, and has the source do it.
//
// The first look waits until events come, so that it has all that they would tell of what was there before. What somebody has
// written is looked at only where it is not what is to be in force: most of it weir has written itself.
//
// Each source has two goroutines and a host of its own. A source that hangs, fails or is slow
// delays no other. The Core has no clock of its own.
package reconcile

import (
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// NoPlan is the plan of a target that has none.
const NoPlan = "none"

// A Target is a target with its plan, as it was found.
type Target struct {
	Key   string // permanent, and its own: docker:WHOLE-ID
	Name  string // as a user spells it
	ID    string // by which changes of it are told, if not by its key: a pod's UID, a container's id; empty: by its key
	Group string // the path of its cgroup; empty: it has none
	Plan  string // NoPlan: it has none, and what weir has put into force is to be taken away
	Rates []Rates
	// Unpaced says that weir's pacer is to hold the target, and does not.
	Unpaced bool
	// Begun says that its group was just born, and got its rules before anybody had looked.
	Begun bool
	// Lacks says what it is to have and cannot have yet, while all Rates can be in force; empty: nothing.
	Lacks string
	Err   error // why it could not be looked at, or must not be limited; nil: neither
}

// Rates are the limits on one device: those in force and those that are wanted. All four rates of
// both are set.
type Rates struct {
	Device    blkdev.Number
	Now, Want limit.Limit
	Node      string // "/dev/vda"; empty: it is not known
}

// A Why is the reason for a deed.
type Why string

// The reasons.
const (
	None  Why = ""      // nothing is to be done
	New   Why = "new"   // the target was not known
	Plan  Why = "plan"  // it is to have something else than before
	Drift Why = "drift" // its limits were in force, and somebody has changed them
	Again Why = "again" // the last attempt failed
)

// A State says how a target stands.
type State string

// The states.
const (
	InForce State = "in-force"   // its limits are those of its plan
	Differs State = "differs"    // they are not yet
	Failed  State = "failed"     // they could not be set; Status.Finding says why
	Left    State = "left-alone" // somebody changes them again and again; Status.Finding says more
)

// A Status is what is known of a target.
type Status struct {
	Key, Name, Plan string
	State           State
	Since           time.Time // of the state
	Drifts          uint64    // how often somebody has changed its limits
	Group           string    // the path of its cgroup; empty: it has none
	Finding         string    // why the limits, or some of them, are not in force; empty: they are
	Next            time.Time // when it is tried again; zero: on the next change
}
