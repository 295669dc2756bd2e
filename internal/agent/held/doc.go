// Package held says whether limits are held, by measurement: from what the kernel charged to a
// target's group while the target was at its limit. It is pure: whoever watches gives it snapshots.
//
// A target that stays below its limit proves nothing, so of such a limit nothing is told. Nor is it
// where the kernel charges some of the target's I/O to another group: a measurement of the target's
// own group misses that. Nor is it of a window so short that a few large requests make it too much: each
// passes the kernel's throttle as a whole.
//
// The agent asks package why once for a limit that is not held, on a host of its own. Where it
// cannot be told, as of v1's buffered writes, the verdict says so.
package held

import (
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
)

// A State says whether a limit is held.
type State string

// The states.
const (
	Held    State = "held"     // measured: at the limit, and not above it
	NotHeld State = "not-held" // measured: above the limit
	NotTold State = "not-told" // not measured; Why says why not
)

const (
	// atLeast is from what share of its limit on a target counts as at its limit.
	atLeast = 0.90
	// overMost is up to what share of its limit a target is held. The kernel's throttle is this exact.
	overMost = 1.05
	// saved is for how long the throttle lets a target catch up, and no longer.
	saved = 200 * time.Millisecond
	// busyLeast is from what share of a limit on it is worth looking often.
	busyLeast = 0.5
	// WindowLeast is how long a target has to be at its limit until that is a measurement. A burst
	// that the kernel lets through at the start is part of it.
	WindowLeast = 5 * time.Second
	// windowMost is how long one measurement takes at most; then the next one begins.
	windowMost = time.Minute
	// gapMost is how far apart two looks may be: between them a target may have rested.
	gapMost = 5 * time.Second
)

// A Limit is one rate of one device, with what was measured of it last.
type Limit struct {
	Device blkdev.Number
	Node   string
	Key    limit.Key
	PerSec uint64 // the limit: bytes or operations a second
	State  State
	Since  time.Time // of the first measurement that says so, with none to the contrary since; zero: not told
	Rate   float64   // measured last, as PerSec; meaningful unless State is NotTold
	From   time.Time // that measurement's window
	To     time.Time
	Why    string // why it is not told; empty: it is
	// Unheld says that weir expects some I/O to go past the limit, so that it asks why.
	Unheld bool
}

// A Target is a target whose limits are in force.
type Target struct {
	Key   string
	Group string       // the path of its cgroup
	Is    *watch.Group // that group in the snapshot; nil: it is looked for by its path
}

// A Verdict is what is told of a target.
type Verdict struct {
	// State is NotHeld if one limit is not held, Held if at least one is held and none is not held.
	State  State
	Since  time.Time // that is so; zero: not told
	Limits []Limit
}

// A Told is what an agent tells of a target: what was measured, and what was found where limits do not hold.
type Told struct {
	Verdict
	Code, Why string // of the finding; empty: there is none
}
