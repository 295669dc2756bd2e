package prove

import (
	"fmt"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// The codes of a Refusal. A front end knows how its user gets round each.
const (
	NoLimit = "no-limit" // the target has no limit to prove
	NoSpot  = "no-place" // weir can create a file on none of its limited devices
	NoRows  = "no-rows"  // no kind of I/O that was asked for can be tried
)

// A Refusal says why nothing can be proved.
type Refusal struct {
	Code    string
	Target  string // as it was named; empty: none was
	Feature string // what was wanted
	Reason  string // what was found on this host
}

func (e *Refusal) Error() string { return e.Feature + ": " + e.Reason }

// Class makes it what this host cannot do.
func (e *Refusal) Class() fault.Class { return fault.NotPossible }

// An UnreachableError says that a target has no directory of a name, or cannot write there.
type UnreachableError struct{ Dir string }

func (e *UnreachableError) Error() string {
	return e.Dir + ": the target has no such directory, or cannot write there"
}

// Class makes it wrong use.
func (e *UnreachableError) Class() fault.Class { return fault.WrongUse }

// A RoomError says that no proof can be made in a directory, because nothing, or not enough, can be
// written there.
type RoomError struct {
	Dir      string
	ReadOnly bool  // it is mounted so
	Free     int64 // bytes of the file system
}

func (e *RoomError) Error() string {
	if e.ReadOnly {
		return e.Dir + " is mounted read-only"
	}
	return fmt.Sprintf("%s has %s free, but weir prove needs %s", e.Dir, limit.FormatMeasured(float64(e.Free)), limit.FormatMeasured(keep+8*mega))
}
