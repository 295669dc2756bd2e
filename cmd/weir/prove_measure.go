package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/act/scratch"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/svg"
	"github.com/weir-io/weir/internal/ui/text"
)

// prove measures, and reports. A scratch disk is measured in a mount namespace of its own.
func (a *app) prove(ctx context.Context, args []string, f *proveFlags) error {
	if _, err := a.io(); err != nil {
		return err
	}
	if len(args) == 0 && f.on[0].On == "" && !scratch.Inside() {
		if os.Geteuid() != 0 {
			return errors.New("prove: permission denied (a scratch disk is a loop device and a mount; run weir as root, or name a directory with --on)")
		}
		return reenter()
	}
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	r, err := a.proveRequest(ctx, args, f)
	if err == nil {
		err = a.measureProof(ctx, r, f.svg)
	}
	var signaled *launch.SignalError
	if errors.As(context.Cause(ctx), &signaled) {
		a.out.Say("%s: ended early; nothing is left behind", signaled.Signal)
		return &cli.StatusError{Status: cli.ExitCode(signaled)}
	}
	return err
}

// proveRequest is what the flags ask for.
func (a *app) proveRequest(ctx context.Context, args []string, f *proveFlags) (prove.Request, error) {
	version, err := a.want()
	if err != nil {
		return prove.Request{}, err
	}
	r := prove.Request{Asked: f.on, Scratch: f.dir, Hold: f.hold, Version: version, Dirs: f.places, Observe: f.observe, Neighbour: f.neighbour,
		Paths: f.wanted, Window: f.window, Short: !f.asked, All: f.all}
	if len(args) == 0 {
		return r, nil
	}
	t, err := a.target(ctx, args[0])
	r.Target = &t
	return r, err
}

func (a *app) measureProof(ctx context.Context, r prove.Request, drawing string) (err error) {
	trial, err := prove.Prepare(ctx, a.host, r)
	defer func() { err = errors.Join(err, trial.Close()) }()
	a.sayNotes(trial.Notes)
	if trial.Left > 0 {
		a.out.Say("note: %s more with --all", cli.Plural(trial.Left, "row", "rows"))
	}
	if err != nil {
		return proveRefused(err)
	}
	progress := cli.NewProgress(os.Stderr)
	proof, err := trial.Measure(ctx, prove.Prover{Load: []string{"/proc/self/exe", load.Arg}, Stderr: os.Stderr, Progress: progress.Show})
	progress.Clear()
	if err != nil {
		return err
	}
	return a.reportProof(proof, text.WhyCommand(r, a.version), drawing)
}

// proveRefused names the flag of a directory that was refused.
func proveRefused(err error) error {
	var none *load.NoDirError
	var unreachable *prove.UnreachableError
	if errors.As(err, &none) || errors.As(err, &unreachable) {
		return fmt.Errorf("prove --on %w", err)
	}
	return err
}

// reportProof prints the rows, draws them, and ends with the verdict's exit code.
func (a *app) reportProof(p prove.Proof, command, drawing string) error {
	if a.out.JSON {
		if err := a.out.Document(api.ProofOf(p, command)); err != nil {
			return err
		}
	} else {
		text.Proof(&a.out, p, command)
	}
	if drawing != "" {
		if err := svg.Proof(drawing, p); err != nil {
			return err
		}
	}
	switch p.Verdict() {
	case prove.NotHeld:
		return &cli.StatusError{Status: cli.ExitNotDone}
	case prove.CannotTell:
		return &cli.StatusError{Status: cli.ExitUnsupported}
	}
	return nil
}
