package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/svg"
)

// traceModes are what weir trace does instead of tracing what a target does: an
// experiment of its own, or a look at dirty pages.
type traceModes struct {
	latency latencyFlags
	dirty   bool
}

// modesLong is what weir trace's help says of them.
const modesLong = "With --latency DIR, weir makes the load itself. It writes a file into DIR in blocks of 64 KiB through the page cache:\n" +
	"first in a cgroup without a memory limit, then in one with the limit --memory. It records the time of every write\n" +
	"and shows both runs over the amount written, with where the time went. --direct adds a run with direct I/O. Rates such\n" +
	"as --write 10MB/s limit all runs. The data is made in memory, because reading a source file would take page cache too.\n" +
	"The file has no name, so nothing is left behind. (After SIGKILL an empty cgroup stays until the next weir command that\n" +
	"looks at limits.) If the kernel cannot be traced, the report shows the times without their parts. In a virtual\n" +
	"machine, the first use of memory can be slow because the host provides it page by page, so run the command twice.\n\n" +
	"With --dirty, weir shows dirty and writeback pages over time, for the host and for the target's memory cgroup, beside\n" +
	"the thresholds in force. It also explains what the six vm.dirty_* settings do on this host. --dirty needs no BPF. The\n" +
	"kernel updates the host's figures about once a second (vm.stat_interval) and those of a cgroup every two seconds."

const modesExample = "  weir trace --latency /data --memory 1GiB --direct --svg writes.svg\n" +
	"  weir trace --dirty docker:web --for 1m"

// register adds the flags to weir trace, after its own, and the help.
func (m *traceModes) register(cmd *cobra.Command) {
	cmd.Long += "\n\n" + modesLong
	cmd.Example += "\n" + modesExample
	m.latency.register(cmd)
	cmd.Flags().BoolVar(&m.dirty, "dirty", false, "show dirty and writeback pages over time, of the host and the target's memory cgroup, beside the thresholds in force")
}

// chosen reports whether one of them is asked for.
func (m *traceModes) chosen() bool { return m.latency.dir != "" || m.dirty }

// check refuses flags that belong to another mode.
func (m *traceModes) check(cmd *cobra.Command) error {
	var mode string
	var refused []string
	rates := []string{"memory", "size", "direct", "read", "write", "read-iops", "write-iops"}
	switch {
	case m.latency.dir == "" && cmd.Flags().Changed("latency"):
		return cli.Usagef("--latency \"\": name a directory")
	case m.latency.dir != "" && m.dirty:
		return cli.Usagef("--latency and --dirty cannot be combined; leave out one")
	case m.latency.dir != "":
		mode, refused = "--latency", []string{"for", "slower", "ops", "files"}
	case m.dirty:
		mode, refused = "--dirty", append(rates, "slower", "ops", "files", "verbose")
	default:
		refused = rates
	}
	for _, name := range refused {
		if !cmd.Flags().Changed(name) {
			continue
		}
		if mode == "" {
			return cli.Usagef("--%s works only with trace --latency DIR", name)
		}
		return cli.Usagef("--%s does not work with trace %s; leave it out", name, mode)
	}
	return nil
}

// traceMode does what was chosen.
func (a *app) traceMode(cmd *cobra.Command, args []string, m *traceModes) error {
	drawing, err := cmd.Flags().GetString("svg")
	if err != nil {
		return err
	}
	if err := svg.Check("--svg", drawing); err != nil {
		return err
	}
	if m.latency.dir == "" {
		window, err := cmd.Flags().GetDuration("for")
		if err != nil {
			return err
		}
		return a.traceDirty(cmd.Context(), args, window, drawing)
	}
	if len(args) > 0 {
		return cli.Usagef("trace --latency %s: weir makes the load itself, in groups of its own; leave out %s", m.latency.dir, args[0])
	}
	if a.root != "/" {
		return cli.Usagef("trace --root %s: it measures this host; leave out --root", a.root)
	}
	m.latency.svg = drawing
	if m.latency.verbose, err = cmd.Flags().GetBool("verbose"); err != nil {
		return err
	}
	return a.traceLatency(cmd.Context(), &m.latency)
}
