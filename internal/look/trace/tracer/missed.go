package tracer

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// missed is how many events the kernel kept from the trace's programs, for any task: a
// processor does not start a program that another task is in the middle of (05b24ff9b2cf),
// which is frequent where the tracepoints of system calls can be preempted. known is false if
// the kernel does not count them, or the caller may not ask.
func (t *Tracer) missed() (events uint64, known bool, err error) {
	if !t.countsMissed {
		return 0, false, nil
	}
	for _, l := range t.links {
		info, err := l.Info()
		if err != nil {
			return events, false, fmt.Errorf("read the count of missed events: %w", err)
		}
		n, err := missedBy(info.Program)
		if errors.Is(err, unix.EPERM) {
			return 0, false, nil // numbers of programs are CAP_SYS_ADMIN's to use, traces are CAP_BPF's
		}
		if err != nil {
			return events, false, fmt.Errorf("read the count of missed events: %w", err)
		}
		events += n
	}
	return events, true, nil
}

func missedBy(id ebpf.ProgramID) (uint64, error) {
	program, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return 0, err
	}
	defer program.Close()
	stats, err := program.Stats()
	if err != nil {
		return 0, err
	}
	return stats.RecursionMisses, nil
}
