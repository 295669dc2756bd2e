package reconcile

import (
	"context"
	"errors"
)

// A Source knows the targets of one kind. Look and Put are called from one goroutine at a time,
// Follow from another one.
type Source interface {
	// Kind is the kind of its targets, as their keys begin.
	Kind() string
	// Look finds targets with their plans: those that changed, in the source's own words; nil:
	// all. An error goes with those targets that were found all the same.
	Look(ctx context.Context, names []string) ([]Target, error)
	// Put puts the plan of a target into force, as the last Look has found it. The error is
	// ErrEnded if the target is not there any more.
	Put(ctx context.Context, key string) error
	// Follow calls changed with the name of what has changed, until it fails or the context ends.
	// It calls it with "", for everything, as soon as it misses nothing any more. One that has
	// nothing to follow waits.
	Follow(ctx context.Context, changed func(name string)) error
	// Follows reports whether Follow has something to follow.
	Follows() bool
	// Alone reports whether Look finds a target by its key without the kind.
	Alone() bool
	// Rules reads the limits in force in a target's group, of which Rates.Now has all four rates. It is called as Look is.
	Rules(ctx context.Context, group string) ([]Rates, error)
}

// ErrNotHere is the error of Follow where there is nothing to follow yet. It is asked for again, and
// nobody is told, as long as it has never been there.
var ErrNotHere = errors.New("it is not here")

// ErrBeside is what an error of Look wraps where all that was asked for was looked at all the same. It
// is told, and nothing is looked at again for it.
var ErrBeside = errors.New("beside the targets")

// ErrEnded is the error of a Put whose target has ended.
var ErrEnded = errors.New("the target has ended")
