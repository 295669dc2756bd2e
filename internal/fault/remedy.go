package fault

// A Remedy is what a user can do about an error, or about what weir tells. It is data, because
// every front end spells it in its own words: a flag, a button, a field of a request. The zero
// Remedy is none.
type Remedy struct {
	Do     Do
	Target string // what it is done to, where that is not plain
	Also   string // what else takes part, where Do says so
}

// Do names one thing to do.
type Do string

// What can be done. The comment says what the request has to be like.
const (
	LimitAll     Do = "limit-all"      // limit all processes of the group, or start the command in a group of its own
	LimitRoot    Do = "limit-root"     // limit the root group, if that is meant
	NameDevice   Do = "name-device"    // name the device that the limit is on
	NameDisk     Do = "name-disk"      // name one of the target's disks
	NameUnit     Do = "name-unit"      // do not ask to keep the limit, or name a systemd unit
	NameService  Do = "name-service"   // do not ask to keep the limit, or name a service or a slice
	DoNotKeep    Do = "do-not-keep"    // do not ask to keep the limit
	GiveUnitFile Do = "give-unit-file" // do not ask to keep the limit, or give the unit a file
	KeepByPlan   Do = "keep-by-plan"   // do not ask to keep the limit, and have weir's agent set it by a plan, or limit the device below
	DropHold     Do = "drop-hold"      // do not ask what holds the limit, or do not ask to keep it

	Keep         Do = "keep"         // ask to keep the limit
	KeepOnRecord Do = "keep-record"  // ask to keep the limit: weir's restore sets it again
	KeepAtStart  Do = "keep-start"   // ask to keep the limit: it is set at each start
	KeepChange   Do = "keep-change"  // ask to keep the limit, which changes what is kept now
	SetByPlan    Do = "set-by-plan"  // have weir's agent set the limit by a plan
	Clear        Do = "clear"        // clear the limit
	RestoreBoot  Do = "restore-boot" // have saved limits restored at boot
	SetAgain     Do = "set-again"    // set the limit again
	HoldAgain    Do = "hold-again"   // set the limit again, to hold buffered writes
	HoldForeign  Do = "hold-foreign" // set the limit again, to hold writes to other groups' files
	Mend         Do = "mend"         // move the writeback of files to the target's group
	AskWhy       Do = "why"          // ask what helps
	ShowOnly     Do = "show-only"    // ask only what would be done
	Save         Do = "save"         // have a limit saved
)

// A Remedied is an error that the user can do something about.
type Remedied struct {
	Err    error
	Remedy Remedy
}

// With adds what the user can do to an error.
func With(err error, r Remedy) error { return &Remedied{err, r} }

// Instead gives an error another remedy, if it has one that its caller does not offer.
func Instead(err error, do Do, r Remedy) error {
	if its, is := err.(*Remedied); is && its.Remedy.Do == do {
		return With(its.Err, r)
	}
	return err
}

func (e *Remedied) Error() string { return e.Err.Error() }

// Unwrap is the error, which has the class.
func (e *Remedied) Unwrap() error { return e.Err }
