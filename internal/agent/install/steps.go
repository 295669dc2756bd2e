package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/state"
)

// A step is one change.
type step struct {
	what string // "make the group weir"
	done string // "the group weir exists"; empty: it has to be done
	do   func(ctx context.Context) error
	undo func(ctx context.Context) error // nil: there is nothing to undo
}

// command is a step that runs commands. undo may be nil.
func (s System) command(what string, do, undo []string) step {
	one := step{what: what + ": " + strings.Join(do, " "), do: func(ctx context.Context) error { return s.run(ctx, do...) }}
	if undo != nil {
		one.undo = func(ctx context.Context) error { return s.run(ctx, undo...) }
	}
	return one
}

// Install has systemd run weird. tell is told each step; of a dry run nothing else is done.
func (s System) Install(ctx context.Context, dry bool, tell func(string)) error {
	if err := errors.Join(s.check(), s.checkProgram()); err != nil {
		return err
	}
	was, err := s.unit()
	if err != nil {
		return err
	}
	var steps []step
	for _, group := range Groups() {
		one := s.command("make the group "+group, []string{"groupadd", "--system", group}, []string{"groupdel", group})
		if s.hasGroup(group) {
			one.done = "the group " + group + " exists"
		}
		steps = append(steps, s.noting(one, group, true))
	}
	next := s.text()
	unit := step{what: "write " + s.at(Unit), do: func(context.Context) error { return s.write(next) },
		undo: func(ctx context.Context) error {
			return errors.Join(s.write(was), s.run(ctx, "systemctl", "daemon-reload"))
		}}
	reload := s.command("have systemd read it", []string{"systemctl", "daemon-reload"}, nil)
	start := []string{"systemctl", "--no-block", "start", name}
	if was != "" {
		start = []string{"systemctl", "--no-block", "try-restart", name} // with the new unit, or the new program
	}
	if was == next {
		unit.done, reload.done = s.at(Unit)+" is as it is to be", "systemd has read it"
	}
	enable := s.command("have weird start at each boot", []string{"systemctl", "enable", name}, []string{"systemctl", "disable", name})
	if s.was(ctx, was, dry, "is-enabled") {
		enable.undo = nil // it was so before
	}
	steps = append(steps, unit, reload, enable)
	if was != "" {
		steps = append(steps, s.command("have it start again if it runs", start, nil))
		start = []string{"systemctl", "--no-block", "start", name}
	}
	return perform(ctx, append(steps, s.command("start it, if there are plans", start, nil)), dry, tell)
}

// Uninstall undoes Install. Limits that weird has set stay, and so do its records and its journal.
func (s System) Uninstall(ctx context.Context, dry bool, tell func(string)) error {
	if err := s.check(); err != nil {
		return err
	}
	was, err := s.unit()
	if err != nil {
		return err
	}
	stop := s.command("end weird, and have it start no more", []string{"systemctl", "disable", "--now", name},
		again(s.was(ctx, was, dry, "is-enabled"), s.was(ctx, was, dry, "is-active")))
	unit := step{what: "remove " + s.at(Unit), do: func(context.Context) error { return s.write("") }, undo: func(ctx context.Context) error {
		return errors.Join(s.write(was), s.run(ctx, "systemctl", "daemon-reload"))
	}}
	reload := s.command("have systemd forget it", []string{"systemctl", "daemon-reload"}, nil)
	if was == "" {
		stop.done, unit.done, reload.done = "there is no weird to end that weird install has made", s.at(Unit)+" is not there", "systemd has forgotten it"
	}
	steps := []step{stop, unit, reload}
	noted, err := s.noted()
	if err != nil {
		return err
	}
	for _, group := range Groups() {
		one := s.command("remove the group "+group, []string{"groupdel", group}, []string{"groupadd", "--system", group})
		switch {
		case !s.hasGroup(group):
			one.done = "the group " + group + " does not exist"
		case !slices.Contains(noted, group):
			one.done = "the group " + group + " stays: weird install has not made it"
		}
		steps = append(steps, s.noting(one, group, false))
	}
	return perform(ctx, steps, dry, tell)
}

// was asks systemd about the unit before it is changed, for what is to be undone. A dry run undoes
// nothing, and asks nothing.
func (s System) was(ctx context.Context, unit string, dry bool, what string) bool {
	return unit != "" && !dry && s.run(ctx, "systemctl", what, "--quiet", name) == nil
}

// again is the command after which a unit is enabled and active as it was; nil: it was neither.
func again(enabled, active bool) []string {
	switch {
	case enabled && active:
		return []string{"systemctl", "--no-block", "enable", "--now", name}
	case enabled:
		return []string{"systemctl", "enable", name}
	case active:
		return []string{"systemctl", "--no-block", "start", name}
	}
	return nil
}

// noting adds to a step that makes or removes a group that this is noted: before a group is made, and
// after one is removed.
func (s System) noting(one step, group string, is bool) step {
	add := func(make func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			err := s.note(group, true)
			if err == nil {
				if err = make(ctx); err != nil {
					err = errors.Join(err, s.note(group, false))
				}
			}
			return err
		}
	}
	remove := func(remove func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := remove(ctx); err != nil {
				return err
			}
			return s.note(group, false)
		}
	}
	if is {
		one.do, one.undo = add(one.do), remove(one.undo)
	} else {
		one.do, one.undo = remove(one.do), add(one.undo)
	}
	return one
}

// perform does steps in their order. If one fails, it undoes those before it, the last one first.
func perform(ctx context.Context, steps []step, dry bool, tell func(string)) error {
	for i, one := range steps {
		if one.done != "" {
			tell(one.done)
			continue
		}
		tell(one.what)
		if dry {
			continue
		}
		err := one.do(ctx)
		if err == nil {
			continue
		}
		ctx := context.WithoutCancel(ctx)
		for _, before := range slices.Backward(steps[:i]) {
			if before.done != "" || before.undo == nil {
				continue
			}
			tell("undo: " + before.what)
			if failed := before.undo(ctx); failed != nil {
				err = errors.Join(err, fmt.Errorf("undo: %w", failed))
			}
		}
		return err
	}
	return nil
}

// noted are the groups that Install has made.
func (s System) noted() ([]string, error) {
	text, err := s.records().Read(made)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(text)), err
}

// note notes that a group was made, or is gone.
func (s System) note(group string, is bool) error {
	all, err := s.noted()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(one string) bool { return one == group })
	if is {
		all = append(all, group)
	}
	records := s.records()
	if len(all) == 0 {
		return records.Remove(made)
	}
	if err := os.MkdirAll(records.Dir, records.Mode); err != nil {
		return err
	}
	return records.Write(made, made+".new", strings.Join(all, "\n")+"\n")
}

// records is the directory of the record of groups.
func (s System) records() state.Folder { return state.Folder{Dir: s.at(folder), Mode: 0o711} }
