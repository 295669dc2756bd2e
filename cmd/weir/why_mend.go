package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/inode"
	"github.com/weir-io/weir/internal/mend"
	"github.com/weir-io/weir/internal/prove"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/why"
)

// A moveDocument is a file to be moved, in JSON (docs/json.md).
type moveDocument struct {
	File   string        `json:"file"`
	Inode  uint64        `json:"inode"`
	Number blkdev.Number `json:"number"` // of the file system
	From   string        `json:"from"`
	To     string        `json:"to"`
}

// A movedDocument is what came of one.
type movedDocument struct {
	moveDocument
	Moved   bool    `json:"moved"`
	Rounds  int     `json:"rounds"`
	Seconds float64 `json:"seconds"`
	Refused string  `json:"refused"` // why it was not moved
}

// whyDryRunDocument is the JSON of weir why --mend --dry-run (docs/json.md).
type whyDryRunDocument struct {
	cli.Schema
	Files []moveDocument `json:"files"`
}

// owners opens the reader of inodes, once. It takes part of a second.
func (a *app) owners() (why.Owners, error) {
	if a.inodes == nil && a.inodesErr == nil {
		a.inodes, a.inodesErr = inode.Open(a.fs)
	}
	if a.inodesErr != nil {
		return nil, a.inodesErr
	}
	return a.inodes, nil
}

// toMend lists the files that were found, each with the group that it is moved to.
func (a *app) toMend(t target.Target, facts why.Facts) ([]mend.Job, error) {
	var jobs []mend.Job
	for _, file := range facts.Foreign() {
		into, err := a.writersGroup(t.Group, file)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, mend.Job{File: file, Into: into})
	}
	if len(jobs) > 0 {
		return jobs, nil
	}
	kept := false
	for _, p := range facts.Places {
		kept = kept || p.Writeback
		if p.OwnersErr != nil {
			return nil, p.OwnersErr
		}
	}
	if !kept {
		return nil, &cgroupfs.Unsupported{Feature: "move the writeback of files to " + t.String(), Reason: "on this host the kernel charges all writeback to the root group",
			Remedy: "weir why " + t.String() + " says why"}
	}
	return nil, nil
}

// writersGroup is the group of the process that has a file open. If a person named the file, or
// the process has ended, it is the group of another process of the target.
func (a *app) writersGroup(g cgroupfs.Group, file inode.File) (cgroupfs.Group, error) {
	if file.PID != 0 {
		own, err := a.fs.OfProcess(g.Hierarchy(), file.PID)
		if err == nil && strings.HasPrefix(own.Path()+"/", strings.TrimSuffix(g.Path(), "/")+"/") {
			return own, nil
		}
	}
	return prove.Inside(g)
}

func (a *app) mendDryRun(jobs []mend.Job) error {
	doc := whyDryRunDocument{cli.SchemaOf("why.dry-run"), []moveDocument{}}
	for _, j := range jobs {
		doc.Files = append(doc.Files, moveOf(j))
		if !a.out.JSON {
			a.out.Print("move the writeback of %s (inode %d of %s) from %s to cgroup %s", why.Name(j.File), j.File.Inode, j.File.Device, why.Whose(j.File.Owner), j.Into.Path())
		}
	}
	if a.out.JSON {
		return a.out.Document(doc)
	}
	return nil
}

func moveOf(j mend.Job) moveDocument {
	return moveDocument{j.File.Path, j.File.Inode, j.File.Device, j.File.Owner.IO.String(), j.Into.Path()}
}

// mend moves files, and says so before and after.
func (a *app) mend(ctx context.Context, jobs []mend.Job) ([]movedDocument, error) {
	moved := []movedDocument{}
	if len(jobs) == 0 {
		a.out.Say("no file to move")
		return moved, nil
	}
	a.out.Say("moving the writeback of %s; this changes their mtime and ctime, and drops their clean pages from the page cache", cli.Plural(len(jobs), "file", "files"))
	progress := cli.NewProgress(os.Stderr)
	m := mend.Mender{Host: a.launchHost(), Owners: a.inodes, Program: []string{"/proc/self/exe"}, Stderr: os.Stderr, Progress: progress.Show}
	err := m.Do(ctx, jobs, func(j mend.Job, r mend.Result) error {
		progress.Clear()
		one := movedDocument{moveDocument: moveOf(j), Moved: r.Refused == "", Rounds: r.Mended.Rounds, Seconds: r.Mended.Took.Seconds(), Refused: r.Refused}
		moved = append(moved, one)
		if one.Moved {
			a.out.Say("%s: charged to cgroup %s now, and no longer to %s (%.1f s)", why.Name(j.File), one.To, why.Whose(j.File.Owner), one.Seconds)
		} else {
			a.out.Say("%s: not moved: %s", why.Name(j.File), one.Refused)
		}
		return nil
	})
	progress.Clear()
	return moved, err
}

// newMend is the weir that weir why --mend starts in a group. It is not for people.
func newMend() *cobra.Command {
	return &cobra.Command{
		Use:    mend.Arg,
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return mend.Serve(cmd.Context(), args, os.Stdout)
		},
	}
}
