package keep

import (
	"context"
	"errors"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/note"
)

// An Action is one thing that is done. It describes itself for a dry run.
type Action interface {
	// Steps lists what Do would do now; none: nothing.
	Steps(ctx context.Context) ([]hold.Step, error)
	// Do does it.
	Do(ctx context.Context) (Done, error)
}

// Done is what came of an action.
type Done struct {
	Undo func() error // takes it back; nil: that is not needed
	Note note.Note    // what has changed for the target ("it"); without a text: nothing
}

// StepsOf lists the steps of actions, in order.
func StepsOf(ctx context.Context, actions []Action) ([]hold.Step, error) {
	var steps []hold.Step
	for _, one := range actions {
		more, err := one.Steps(ctx)
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	return steps, nil
}

// DoAll does one action after the other. What was done before a failure is taken back, the last
// first.
func DoAll(ctx context.Context, actions []Action) ([]note.Note, error) {
	var notes []note.Note
	var undos []func() error
	for _, one := range actions {
		done, err := one.Do(ctx)
		if err != nil {
			for i := len(undos) - 1; i >= 0; i-- {
				err = errors.Join(err, undos[i]())
			}
			return notes, err
		}
		if done.Undo != nil {
			undos = append(undos, done.Undo)
		}
		if done.Note.Text != "" {
			notes = append(notes, done.Note)
		}
	}
	return notes, nil
}

// removeFiles removes files that keep limits.
type removeFiles struct {
	h     *host.Host
	files []hold.File
	note  note.Note // if there is any file
}

func (a removeFiles) Steps(context.Context) ([]hold.Step, error) {
	var steps []hold.Step
	for _, f := range a.files {
		steps = append(steps, hold.Step{File: f.Path})
	}
	return steps, nil
}

func (a removeFiles) Do(ctx context.Context) (done Done, err error) {
	for _, f := range a.files {
		if f.Own {
			err = errors.Join(err, a.h.Holder().RemoveRecord(f.Path))
		} else {
			err = errors.Join(err, a.h.Holder().RemoveFile(ctx, f.Path))
		}
	}
	if len(a.files) > 0 && err == nil {
		done.Note = a.note
	}
	return done, err
}

// removes is the action that removes files; none, if there are none.
func removes(h *host.Host, files []hold.File, n note.Note) []Action {
	if len(files) == 0 {
		return nil
	}
	return []Action{removeFiles{h, files, n}}
}
