package tracer

import (
	"strings"

	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/bpf/refusal"
	"github.com/weir-io/weir/internal/look/trace"
)

func unavailable(reason, remedy string) error {
	return &bpf.Unavailable{Op: trace.Verb, Reason: reason, Remedy: remedy}
}

// refused explains why something that every trace needs was refused.
func refused(err error) error { return refusal.Of(trace.Verb, trace.KernelMin, err) }

// reason returns a refusal as one line.
func reason(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.ReplaceAll(text, " (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", "") // it is not
}
