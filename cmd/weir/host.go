package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/self"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/targets/engine"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

// An app is what all verbs share: the flags that are the same everywhere, and the
// host they speak of.
type app struct {
	out     cli.Out
	root    string
	version string // --cgroup
	dry     bool   // --dry-run, of verbs that have dryFlag
	heavy   self.Heavy

	host *host.Host // once it is open
}

// cgroupFlag adds --cgroup to a verb.
func (a *app) cgroupFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.version, "cgroup", "auto", "cgroup `VERSION` to use: v1, v2 or auto")
}

func (a *app) want() (cgroupfs.Version, error) {
	switch a.version {
	case "", "auto":
		return 0, nil
	case "v1":
		return cgroupfs.V1, nil
	case "v2":
		return cgroupfs.V2, nil
	}
	return 0, cli.Usagef("--cgroup %q: write v1, v2 or auto", a.version)
}

// helpers are weird, beside this program.
func (a *app) helpers() helper.Starter {
	return helper.Of("weird", cli.Version(version), a.heavy.Program)
}

// options are what the flags and the environment say of the host.
func (a *app) options() host.Options {
	version, _ := a.want() // io refuses what is no version
	o := host.Options{Root: a.root, Version: version, Program: os.Executable, Helpers: a.helpers(), Sockets: map[string]string{
		"containerd": os.Getenv("CONTAINERD_ADDRESS"), // as ctr has it
		"pod":        os.Getenv("CONTAINER_RUNTIME_ENDPOINT"),
	}}
	for _, m := range engine.Makers() {
		o.Sockets[m.Kind()] = m.Host()
	}
	return o
}

// look opens the host for verbs that are not about limits, and cleans nothing up.
func (a *app) look() (err error) {
	if a.host == nil {
		a.host, err = host.Open(a.options())
	}
	return err
}

// open opens the host, and cleans up what dead weirs left. What cannot be cleaned up is said,
// and is no reason not to go on.
func (a *app) open() error {
	if a.host != nil {
		return nil
	}
	if err := a.look(); err != nil {
		return err
	}
	if err := a.host.Sweep(); err != nil {
		a.out.Say("clean up after a killed weir: %v", text.Error(err))
	}
	return nil
}

func (a *app) close() {
	if a.host != nil {
		_ = a.host.Close()
	}
}

// io returns the hierarchy that limits are set in.
func (a *app) io() (*cgroupfs.Hierarchy, error) {
	if _, err := a.want(); err != nil {
		return nil, err
	}
	if err := a.open(); err != nil {
		return nil, err
	}
	return a.host.IO()
}

func (a *app) target(ctx context.Context, spec string) (targets.Target, error) {
	if _, err := a.io(); err != nil {
		return targets.Target{}, err
	}
	return a.host.Target(ctx, spec)
}

// limits is the core that shows, sets and clears limits.
func (a *app) limits() (limiting.Manager, error) {
	_, err := a.io()
	return limiting.Manager{Host: a.host}, err
}

// sayNotes says what the core has to say beside a result.
func (a *app) sayNotes(notes []note.Note) { text.Notes(&a.out, notes) }

// explain says what is expected to hold.
func (a *app) explain(d place.Decision) { text.Decision(&a.out, d) }

// dryFlag adds --dry-run to a verb.
func (a *app) dryFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.dry, "dry-run", false, "print each step that would be taken, and change nothing")
}

// shown prints what would be done, or says why it cannot be.
func (a *app) shown(verb string) func([]hold.Step, error) error {
	return func(steps []hold.Step, err error) error {
		if err != nil {
			return inFlags(err)
		}
		return a.dryRun(verb, steps)
	}
}

// dryRun prints what would be done.
func (a *app) dryRun(verb string, steps []hold.Step) error {
	if a.out.JSON {
		return a.out.Document(api.DryRunOf(verb, steps))
	}
	text.Steps(&a.out, steps)
	return nil
}
