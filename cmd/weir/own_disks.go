package main

import (
	"context"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/target"
)

// onOwnDisks puts limits without a place on a target's own disks, and says which it leaves out.
func (a *app) onOwnDisks(ctx context.Context, limits []limit.Asked, t target.Target) ([]limit.Asked, error) {
	all, notes, err := place.OwnDisks(ctx, a.host.Devices(), limits, t)
	a.sayNotes(notes)
	return all, err
}

// sayNotes says what the core has to say beside a result.
func (a *app) sayNotes(notes []note.Note) {
	for _, n := range notes {
		a.out.Say("%s", n)
	}
}
