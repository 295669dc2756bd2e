package main

import (
	"context"
	"os"

	"github.com/weir-io/weir/internal/act/mend"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

func (a *app) mendDryRun(jobs []mend.Job) error {
	if a.out.JSON {
		return a.out.Document(api.WhyDryRunOf(jobs))
	}
	text.Moves(&a.out, jobs)
	return nil
}

// mend moves files, and says so before and after.
func (a *app) mend(ctx context.Context, jobs []mend.Job) ([]api.Moved, error) {
	moved := []api.Moved{}
	text.Moving(&a.out, jobs)
	if len(jobs) == 0 {
		return moved, nil
	}
	owners, err := a.host.Owners()
	if err != nil {
		return moved, err
	}
	progress := cli.NewProgress(os.Stderr)
	m := mend.Mender{Host: a.host.Launch(), Owners: owners, Program: []string{"/proc/self/exe"}, Stderr: os.Stderr, Progress: progress.Show}
	err = m.Do(ctx, jobs, func(j mend.Job, r mend.Result) error {
		progress.Clear()
		moved = append(moved, api.MovedOf(j, r))
		text.Moved(&a.out, j, r)
		return nil
	})
	progress.Clear()
	return moved, err
}
