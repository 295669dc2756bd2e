package keep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/targets/engine"
)

// engineKeeper is a container's engine, if it takes other limits to keep.
type engineKeeper struct{ base }

func (k engineKeeper) By() string              { return k.t.Record.By }
func (engineKeeper) May(context.Context) error { return nil }

func (k engineKeeper) Keep(_ context.Context, w Wanted, _ *hold.Plan) (Edit, error) {
	var changes []targets.Recorded
	for _, p := range w.Places {
		changes = append(changes, targets.Recorded{Path: p.Device.Node, Device: p.Device.Number, Limit: p.Limit})
	}
	update, err := engine.UpdateOf(k.t.Lasting, k.t.Record, changes)
	if err != nil {
		return Edit{}, err
	}
	edit := Edit{Before: tells(k.h, update, k.t.Group.Hierarchy(), note.Note{})}
	other, err := k.other()
	edit.After = removes(k.h, other, note.Note{})
	return edit, err
}

func (k engineKeeper) Forget(_ context.Context, only []blkdev.Number, _ *hold.Plan) (Edit, error) {
	edit, err := k.forgetOther(only)
	if err != nil {
		return edit, err
	}
	edit.Before, err = engineForgets(k.h, k.t.Lasting, k.t.Record, only)
	return edit, err
}

func (k engineKeeper) Lasts(plan hold.Plan, kept bool) []note.Note {
	if kept {
		return []note.Note{note.Infof("kept", "%s keeps the limit for each start of %s", k.t.Record.By, k.t).With(fault.Remedy{Do: fault.Clear})}
	}
	return k.lost(plan)
}

// engineForgets makes an engine store no limits for a container any more, on the named devices, or
// on all if none is named. It does nothing if the engine stores none, or cannot be told.
func engineForgets(h *host.Host, lasting string, r *targets.Record, only []blkdev.Number) ([]Action, error) {
	if r == nil || !r.Updates {
		return nil, nil
	}
	var changes []targets.Recorded
	for _, l := range r.Limits {
		if len(only) == 0 || l.Err == nil && slices.Contains(only, l.Device) {
			l.Limit = limit.None
			changes = append(changes, l)
		}
	}
	update, err := engine.UpdateOf(lasting, r, changes)
	if err != nil {
		return nil, err
	}
	return tells(h, update, nil, note.Infof("forgotten", "%s no longer keeps a limit for it", r.By)), nil
}

// tellEngine has an engine keep what an update says.
type tellEngine struct {
	h      *host.Host
	update *engine.Update
	io     *cgroupfs.Hierarchy // the rules follow there, and without rights nothing is told; nil: not checked
	note   note.Note
}

// tells is the action of an update; none, if it would change nothing.
func tells(h *host.Host, update *engine.Update, io *cgroupfs.Hierarchy, n note.Note) []Action {
	if update == nil {
		return nil
	}
	return []Action{tellEngine{h, update, io, n}}
}

func (a tellEngine) kind() (engine.Kind, error) {
	for _, m := range engine.Makers() {
		if m.Kind() == a.update.Kind {
			return a.h.Containers(m, nil), nil
		}
	}
	return engine.Kind{}, errors.New("no engine is called " + a.update.Kind)
}

// Steps is a command that does the same.
func (a tellEngine) Steps(context.Context) ([]hold.Step, error) {
	k, err := a.kind()
	if err != nil {
		return nil, err
	}
	socket, err := k.Asked()
	if err != nil {
		return nil, err
	}
	words := []string{"curl", "--unix-socket", socket, "--json", string(a.update.After), "http://" + a.update.Kind + a.update.Path}
	return []hold.Step{{Command: cmdline.Line(words)}}, nil
}

func (a tellEngine) Do(ctx context.Context) (Done, error) {
	if a.io != nil {
		if err := a.io.Writable(); err != nil {
			return Done{}, err
		}
	}
	k, err := a.kind()
	if err != nil {
		return Done{}, err
	}
	undo := func() error {
		if err := k.Update(context.WithoutCancel(ctx), a.update.Path, a.update.Before); err != nil {
			return fmt.Errorf("undo: %w", err)
		}
		return nil
	}
	return Done{undo, a.note}, k.Update(ctx, a.update.Path, a.update.After)
}
