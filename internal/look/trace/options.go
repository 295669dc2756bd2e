package trace

import (
	"time"

	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

const (
	// Verb is what weir does when it traces, for messages.
	Verb = "trace"
	// KernelMin is the first that traces are had on.
	KernelMin = "5.10"
)

// Hindrance returns why the kernel cannot be traced, as far as weir can know without asking it;
// nil: no reason is known.
func Hindrance() error {
	if err := bpf.Hindrance("/", Verb, KernelMin); err != nil {
		return err
	}
	// The kernel uses the host's process numbers.
	if sees, err := bpf.InHostPIDs(); err != nil || sees {
		return err
	}
	return &bpf.Unavailable{Op: Verb, Reason: "weir runs in its own pid namespace, where it would take other processes for the target's",
		Remedy: "run weir on the host, or in a container that shares the host's pid namespace"}
}

// Options say what is traced.
type Options struct {
	Group  *cgroupfs.Group // the processes of this group and those below; nil: PID's, or all
	Filter *Filter         // the same by its number; nil: Resolved makes it of Group
	PID    int             // this process, all its threads
	Kinds  []Kind
	Slower time.Duration // each operation that takes at least this long is told; 0: none
	Files  bool          // sums by file
	Asker  int           // the process that asks for the trace of a group or of the host, and is no part of it; 0: none
}

// A Filter is a group as a trace's programs know it.
type Filter struct {
	ID    uint64 // of its directory
	Level uint32 // how many groups are above it
	V1    bool
}

// Resolved has Filter in the place of Group, as it can be handed to another process.
func (o Options) Resolved() (Options, error) {
	if o.Group == nil || o.Filter != nil {
		return o, nil
	}
	id, err := o.Group.ID()
	o.Filter = &Filter{ID: id, Level: o.Group.Level(), V1: o.Group.Hierarchy().Version == cgroupfs.V1}
	o.Group = nil
	return o, err
}
