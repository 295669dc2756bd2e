// Command lab boots real kernels on this machine and runs weir's tests inside.
// See package lab for how to write such tests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab/internal/matrix"
	"github.com/weir-io/weir/lab/internal/small"
)

type options struct {
	filter   matrix.Filter
	run      string
	with     string // programs of this host for guests, with commas between
	beside   string // a command for the shell
	list     bool
	verbose  bool
	parallel int
	memory   int
	timeout  time.Duration
}

func main() {
	o := parse()
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	err := lab(ctx, o)
	if errors.Is(err, errFailed) {
		os.Exit(1)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		os.Exit(2)
	}
}

func parse() options {
	var o options
	flag.StringVar(&o.filter.Kernel, "kernel", "", "guests with this `version` only: 5.10, 6.1, 6.12, newest")
	flag.StringVar(&o.filter.Mode, "mode", "", "guests with these cgroups only: v1, v2, hybrid, hybrid-v2 or split")
	flag.StringVar(&o.filter.Lane, "lane", "", "guests of this kind only: uml, qemu, full, full-qemu or native")
	flag.StringVar(&o.run, "run", "", "tests that match this `regexp` only, as in go test")
	flag.StringVar(&o.with, "with", "", "`PROGRAMS` of this host that guests get too, with commas between, such as prometheus; they may need the C library, and no other. The lab builds kubelet, cluster (all of Kubernetes' programs), containerd and containerd-2.1 itself")
	flag.StringVar(&o.beside, "beside", "", "`COMMAND` for the shell that measures nothing: it runs in the time that guests leave, and the run fails if it does")
	flag.BoolVar(&o.filter.All, "all", false, "every kernel, not the default matrix")
	flag.BoolVar(&o.filter.Usual, "usual", false, "of the guests that are chosen, run what the default run has there, and no more")
	flag.BoolVar(&o.list, "list", false, "print guests and tests, and run nothing")
	flag.BoolVar(&o.verbose, "v", false, "print the guests' consoles")
	flag.IntVar(&o.parallel, "parallel", 0, "guests at once; 0 is as many as the machine was measured to carry")
	flag.IntVar(&o.memory, "memory", small.Memory, "`MiB` that a small guest has")
	flag.DurationVar(&o.timeout, "timeout", 12*time.Minute, "of each guest on a fast machine, and longer on a slower one; of those with daemons that are emulated or run long tests, twice as long")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "lab: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	return o
}
