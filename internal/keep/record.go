package keep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets/engine"
)

// record is weir's own record of limits, from which they are restored.
type record struct{ base }

func (record) By() string   { return "weir" }
func (record) Paces() Paces { return PaceStarts }

func (k record) May(context.Context) error {
	if k.h.IsOwn() && os.Geteuid() != 0 {
		return &Refused{Target: k.t.String(), Kind: fault.NotDone, Why: "permission denied (saved limits are in " + SavedDir + "; run weir as root)"}
	}
	return nil
}

func (k record) Keep(_ context.Context, w Wanted, plan *hold.Plan) (Edit, error) {
	r, lost, err := read(k.h, k.t.Lasting)
	if err != nil {
		return Edit{}, err
	}
	r.Name, r.Host = k.t.String(), k.h.Socket(k.t.Kind)
	if r.Entries, err = merge(k.h, r.Entries, w); err != nil {
		return Edit{}, err
	}
	if err := planRecord(k.h, plan, r); err != nil {
		return Edit{}, err
	}
	other, err := k.other()
	return Edit{After: removes(k.h, other, note.Note{}), Notes: notesOf(lost, "its limits saved before cannot be read, and are replaced")}, err
}

func (k record) Forget(ctx context.Context, only []blkdev.Number, plan *hold.Plan) (Edit, error) {
	edit, err := k.forgetOther(only)
	if err != nil {
		return edit, err
	}
	r, lost, err := read(k.h, k.t.Lasting)
	switch {
	case err != nil:
		return edit, err
	case lost != nil && len(only) > 0: // it may be of another device
		edit.Notes = notesOf(lost, "its saved limits cannot be read, and stay; clear all its limits to remove them")
		return edit, nil
	case lost != nil:
		edit.Notes = notesOf(lost, "its saved limits cannot be read, and are removed")
	case len(r.Entries) == 0:
		return edit, nil
	}
	if len(only) == 0 {
		r.Entries = nil
	} else {
		r.Entries = withoutDevices(ctx, k.h, r.Entries, only)
	}
	return edit, planRecord(k.h, plan, r)
}

func (k record) Lasts(plan hold.Plan, wanted bool) []note.Note {
	if wanted && plan.File != nil && plan.File.Text != "" {
		return []note.Note{note.Infof("kept", "%s keeps the limit: after a restart of %s, weir restore sets it again", plan.File.Path, k.t).With(fault.Remedy{Do: fault.RestoreBoot})}
	}
	return k.lost(plan)
}

// read reads what weir has on record for a target. A damaged record has nothing, and keeps nobody from
// setting or clearing limits: what is lost says why it could not be read.
func read(h *host.Host, lasting string) (r Saved, lost *state.DamagedError, err error) {
	r, err = ReadSaved(h.Root, lasting)
	if errors.As(err, &lost) {
		return Saved{Target: lasting}, lost, nil
	}
	return r, nil, err
}

// notesOf tells of a damaged record; not at all, if lost is nil.
func notesOf(lost *state.DamagedError, what string) []note.Note {
	if lost == nil {
		return nil
	}
	return []note.Note{note.Warningf("record-damaged", "%s (%s: %v)", what, lost.Path, lost.Err)}
}

// planRecord adds a record to a plan.
func planRecord(h *host.Host, plan *hold.Plan, r Saved) error {
	r.Entries = thatBind(r.Entries)
	text, err := r.Text()
	plan.File = &hold.File{Path: RecordPath(h, r.Target), Text: text, Own: true}
	return err
}

// RecordPath is where the record of a target is, by the target's name for good.
func RecordPath(h *host.Host, lasting string) string {
	return filepath.Join(h.Root, SavedPath(lasting))
}

// other are the files that keep limits for a target from when it was started otherwise: on
// another version of cgroups, or by another driver or version of its owner's. They would set
// another limit.
func (b base) other() (files []hold.File, err error) {
	if b.t.Lasting == "" {
		return nil, nil
	}
	if !b.recorded() {
		r, lost, err := read(b.h, b.t.Lasting)
		if err != nil {
			return nil, err
		}
		if len(r.Entries) > 0 || lost != nil {
			files = append(files, hold.File{Path: RecordPath(b.h, b.t.Lasting), Own: true})
		}
	}
	if b.scoped() {
		return files, nil
	}
	for _, m := range engine.Makers() {
		_, id, _ := strings.Cut(b.t.Lasting, ":")
		if m.Kind() != b.t.Kind {
			continue
		}
		path := filepath.Join(b.h.Root, dropin.Path(m.ScopeOf(id)))
		entries, err := readDropIn(path)
		if err != nil {
			return nil, err
		}
		if entries != nil {
			files = append(files, hold.File{Path: path})
		}
	}
	return files, nil
}

// forgetOther removes those files too, if all limits are forgotten.
func (b base) forgetOther(only []blkdev.Number) (Edit, error) {
	if len(only) > 0 {
		return Edit{}, nil
	}
	files, err := b.other()
	return Edit{After: removes(b.h, files, note.Infof("forgotten", "removed the limit saved for its start under another cgroup driver or version"))}, err
}

// Lock keeps other weirs from changing saved limits while this one does. With prepare it makes
// their directory, the first step of saving. It waits for at most state.LockMost.
func Lock(ctx context.Context, h *host.Host, prepare bool) (unlock func(), err error) {
	if !h.IsOwn() || os.Geteuid() != 0 {
		return func() {}, nil // a copy's records stay as they are, and root's are not others' to change
	}
	if prepare {
		if err := savedIn(h.Root).Make(); err != nil {
			return nil, fmt.Errorf("save limits: %w", err)
		}
	}
	lock, err := h.State.Wait(ctx, SavedDir, "the saved limits", state.LockMost)
	if err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}
