package limiting

import (
	"context"
	"fmt"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A Change is what PrepareSet or PrepareClear has prepared. Nothing has changed yet. Both methods
// read anew what may have changed since, so they may still refuse, before anything has changed.
type Change interface {
	// Steps returns what Apply would do. It changes nothing.
	Steps(ctx context.Context) (Preview, error)
	// Apply does it, completely or not at all. The result has what was noted until an error too.
	Apply(ctx context.Context) (Result, error)
}

// A Preview is what a change would do.
type Preview struct {
	Notes   []note.Note
	Decided place.Decision // what is expected to hold then; of a clear: nothing
	Steps   []hold.Step
}

// A Result is what a change has done.
type Result struct {
	Target  string // as a user spells it
	Path    string // of the group; empty: there is none
	Version cgroupfs.Version
	Owner   targets.Owner
	// Noted is what was noted while it was done, and Notes what is to be known of the result.
	Noted, Notes []note.Note
	Decided      place.Decision // what is expected to hold now; of a clear: nothing
	Cleared      []place.Placed // of a clear: the limits that were removed

	group *cgroupfs.Group
}

// A Changed is a device that was named, as it is now.
type Changed struct {
	Device   blkdev.Device
	Limit    limit.Limit    // in force now, as read back
	Expected place.Expected // of the rates that were named; of a clear: nothing
}

// Devices reads what is in force now on the devices of the change.
func (r Result) Devices() ([]Changed, error) {
	var all []Changed
	for _, p := range r.Decided.Places {
		now, err := r.group.Rule(p.Device.Number)
		if err != nil {
			return nil, err
		}
		all = append(all, Changed{p.Device, now, p})
	}
	for _, p := range r.Cleared {
		now, err := r.group.Rule(p.Device.Number)
		if fault.IsUnsupported(err) {
			now, err = limit.None, nil // systemd takes io away with the last limit of a slice's units
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Changed{p.Device, now, place.Expected{Placed: p}})
	}
	return all, nil
}

// resultOf is an empty result of a target.
func resultOf(t targets.Target) Result {
	return Result{Target: t.String(), Path: t.Group.Path(), Version: t.Group.Hierarchy().Version, Owner: t.Owner, group: &t.Group}
}

// Describe says what the target is: "unit:x.service (cgroup /system.slice/x.service, v2, owner
// systemd)".
func (r Result) Describe() string {
	return fmt.Sprintf("%s (cgroup %s, %s, owner %s)", r.Target, r.Path, r.Version, r.Owner)
}

// Set prepares a request and applies it. The result has what was noted until an error, too.
func (m Manager) Set(ctx context.Context, r Request) (Result, error) {
	change, err := m.PrepareSet(ctx, r)
	if err != nil {
		return Result{Noted: NotesOf(err)}, err
	}
	return change.Apply(ctx)
}
