// Package mend moves the writeback of files to the groups of processes that write to them.
// Package inode moves a file. But the kernel charges a page to the group that brings it into
// the page cache, so a helper that starts in the group does that (package mending), while this process
// hands it the files and waits (Mender). Package why and the user decide which files are moved,
// and where to.
//
// It touches only files that the user named or that the target has open for writing, through a
// descriptor of that very file. There is nothing to undo.
package mend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
)

// Arg is the verb of the weir that is born in a group: what follows it are files.
const Arg = "__mend"

// A Job is a file to move.
type Job struct {
	File inode.File // as it was found
	Into cgroupfs.Group
}

// A Result is what came of a job.
type Result struct {
	Mended  inode.Mended
	Refused string // why the file was not moved; empty: it was
}

// Owners reads the owners of files: an inode.Asker.
type Owners interface {
	OfPaths(ctx context.Context, paths []string) ([]inode.File, error)
}

// A Mender has files moved.
type Mender struct {
	Host     launch.Host
	Owners   Owners
	Program  []string // starts weir
	Stderr   *os.File // of that weir, for people
	Progress func(what string, part float64)
}

// filesAtOnce bounds what one weir in a group is given, a descriptor each.
const filesAtOnce = 64

// Do has all files moved, one after the other, and calls done for each. Its error is
// done's, or says why no weir could be started in a group.
func (m Mender) Do(ctx context.Context, jobs []Job, done func(Job, Result) error) error {
	count := 0
	tell := func(j Job, r Result) error {
		count++
		return done(j, r)
	}
	for rest := jobs; len(rest) > 0; {
		n := 1
		for n < len(rest) && n < filesAtOnce && rest[n].Into == rest[0].Into {
			n++
		}
		wait := func() {
			m.Progress(fmt.Sprintf("file %d of %d", count+1, len(jobs)), float64(count)/float64(len(jobs)))
		}
		if err := m.inGroup(ctx, rest[:n], wait, tell); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// inGroup has the files of one group moved. Before it waits for one it calls wait.
func (m Mender) inGroup(ctx context.Context, jobs []Job, wait func(), done func(Job, Result) error) error {
	why, err := crowded(jobs[0].Into)
	if err != nil {
		return err
	}
	if why != "" {
		return refuseAll(jobs, why, done)
	}
	var open []Job
	var handles []*os.File
	for _, j := range jobs {
		h, err := m.open(ctx, j.File)
		if err != nil {
			if err := done(j, Result{Refused: Reason(err)}); err != nil {
				return err
			}
			continue
		}
		defer h.Close()
		open, handles = append(open, j), append(handles, h)
	}
	if len(open) == 0 {
		return ctx.Err()
	}
	child, answers, err := m.start(open[0].Into, handles)
	if err != nil {
		return err
	}
	defer answers.Close()
	defer context.AfterFunc(ctx, child.Kill)()
	decoder := json.NewDecoder(answers)
	for i, j := range open {
		wait()
		var text json.RawMessage
		var r Result
		err := decoder.Decode(&text)
		if err == nil {
			err = rawtext.Unmarshal(text, &r)
		}
		if err != nil {
			return m.cutShort(ctx, child, open[i:], err, done)
		}
		if err := done(j, r); err != nil {
			child.Kill()
			_, _ = child.Wait() // it was ended
			return err
		}
	}
	_, err = child.Wait()
	return err
}

// cutShort is for the files whose answers did not come.
func (m Mender) cutShort(ctx context.Context, child *launch.Child, left []Job, err error, done func(Job, Result) error) error {
	child.Kill()
	status, waited := child.Wait()
	if waited != nil || ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), waited)
	}
	return refuseAll(left, fmt.Sprintf("the helper in the group ended before it was done (status %d, %v)", status, err), done)
}

func refuseAll(jobs []Job, why string, done func(Job, Result) error) error {
	for _, j := range jobs {
		if err := done(j, Result{Refused: why}); err != nil {
			return err
		}
	}
	return nil
}

func (m Mender) start(into cgroupfs.Group, handles []*os.File) (*launch.Child, *os.File, error) {
	answers, write, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start a helper in %s: %w", into.Dir(), err)
	}
	args := append(append([]string{}, m.Program...), Arg)
	for i := range handles {
		args = append(args, descriptor(3+i))
	}
	child, err := m.Host.Spawn(launch.Enter(into), launch.Command{Args: args, Stdout: write, Stderr: m.Stderr}, handles...)
	if err = errors.Join(err, write.Close()); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start a helper in %s: %w", into.Dir(), err), answers.Close())
	}
	return child, answers, nil
}
