package trace

import (
	"strings"

	"github.com/weir-io/weir/internal/bpf"
)

const (
	verb      = "trace"
	kernelMin = "5.10" // the first that traces are had on
)

// hindrance looks for what makes it useless to ask the kernel for a trace.
func hindrance() error { return bpf.Hindrance("/", verb, kernelMin) }

// seesHost refuses another pid namespace: the kernel's numbers of processes are the host's.
func seesHost() error {
	if sees, err := bpf.InHostPIDs(); err != nil || sees {
		return err
	}
	return unavailable("weir runs in its own pid namespace, where it would take other processes for the target's", "run weir on the host, or in a container that shares the host's pid namespace")
}

func unavailable(reason, remedy string) error {
	return &bpf.Unavailable{Op: verb, Reason: reason, Remedy: remedy}
}

// refused explains why what every trace needs was refused.
func refused(err error) error { return bpf.Refusal(verb, kernelMin, err) }

// reason is a refusal in a line.
func reason(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.ReplaceAll(text, " (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", "") // it is not
}
