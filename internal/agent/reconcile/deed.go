package reconcile

import "time"

// A Deed is what a Loop has done for a target, could not do, or has seen others do.
type Deed struct {
	Target  Target // as it was before
	What    What
	Why     Why
	Finding string // why it is not done, or left alone
}

// What a Deed is.
type What int

// The deeds.
const (
	Put      What = iota // the limits of the plan are in force
	TakenOff             // the target has no plan any more, and weir has removed what it had set
	ByOthers             // somebody has changed limits that were in force
	NotDone              // the limits could not be set
	GaveWay              // the target is left alone
)

// decide asks the Core. drifted says that it has counted a change of somebody else's.
func (l *Loop) decide(t Target) (why Why, drifted bool) {
	before := l.Core.DriftsOf(t.Key)
	why = l.Core.Decide(time.Now(), t)
	return why, l.Core.DriftsOf(t.Key) > before
}

func (l *Loop) told(d Deed) {
	if l.Tell != nil {
		l.Tell(d)
	}
}
