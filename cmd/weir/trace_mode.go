package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/cli"
)

// traceModes are what weir trace does instead of tracing what a target does: an
// experiment of its own, or a look at dirty pages.
type traceModes struct {
	latency latencyFlags
	dirty   bool
}

// register adds the flags to weir trace, after its own.
func (m *traceModes) register(cmd *cobra.Command) {
	m.latency.register(cmd)
	cmd.Flags().BoolVar(&m.dirty, "dirty", false, "show dirty and writeback pages over time, of the host and the target's memory, against the thresholds in force")
	if cmd.Flags().Lookup("svg") == nil {
		cmd.Flags().String("svg", "", "draw it into `FILE`")
	}
}

// chosen reports whether one of them is asked for.
func (m *traceModes) chosen() bool { return m.latency.dir != "" || m.dirty }

// check refuses flags that belong to another mode.
func (m *traceModes) check(cmd *cobra.Command) error {
	mode, refused := "", []string{}
	rates := []string{"memory", "size", "direct", "read", "write", "read-iops", "write-iops"}
	switch {
	case m.latency.dir != "" && m.dirty:
		return cli.Usagef("--latency and --dirty: each is a look of its own; leave out one")
	case m.latency.dir != "":
		mode, refused = "--latency", []string{"for", "slower", "ops", "files"}
	case m.dirty:
		mode, refused = "--dirty", append(rates, "slower", "ops", "files")
	default:
		refused = rates
	}
	for _, name := range refused {
		if !cmd.Flags().Changed(name) {
			continue
		}
		if mode == "" {
			return cli.Usagef("--%s: it is for trace --latency DIR", name)
		}
		return cli.Usagef("--%s: it is not for trace %s; leave it out", name, mode)
	}
	return nil
}

// traceMode does what was chosen.
func (a *app) traceMode(cmd *cobra.Command, args []string, m *traceModes) error {
	svg, err := cmd.Flags().GetString("svg")
	if err != nil {
		return err
	}
	if err := checkSVG(svg); err != nil {
		return err
	}
	if m.latency.dir == "" {
		window, err := cmd.Flags().GetDuration("for")
		if err != nil {
			return err
		}
		return a.traceDirty(cmd.Context(), args, window, svg)
	}
	if len(args) > 0 {
		return cli.Usagef("trace --latency %s: it writes by itself, in groups of its own; leave out %s", m.latency.dir, args[0])
	}
	if a.root != "/" {
		return cli.Usagef("trace --root %s: it measures this host; leave out --root", a.root)
	}
	m.latency.svg = svg
	return a.traceLatency(cmd.Context(), &m.latency)
}
