package trace

import (
	"strings"

	"github.com/weir-io/weir/internal/linux/bpf"
)

const (
	verb      = "trace"
	kernelMin = "5.10" // the first that traces are had on
)

// hindrance checks for known reasons why the kernel cannot be traced.
func hindrance() error { return bpf.Hindrance("/", verb, kernelMin) }

// seesHost returns an error in another pid namespace, because the kernel uses the host's
// process numbers.
func seesHost() error {
	if sees, err := bpf.InHostPIDs(); err != nil || sees {
		return err
	}
	return unavailable("weir runs in its own pid namespace, where it would take other processes for the target's", "run weir on the host, or in a container that shares the host's pid namespace")
}

func unavailable(reason, remedy string) error {
	return &bpf.Unavailable{Op: verb, Reason: reason, Remedy: remedy}
}

// refused explains why something that every trace needs was refused.
func refused(err error) error { return bpf.Refusal(verb, kernelMin, err) }

// reason returns a refusal as one line.
func reason(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.ReplaceAll(text, " (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", "") // it is not
}
