// Package bpf tells what this host lets BPF programs do: what hinders them, why the
// kernel refused one, how much memory they may lock, and whether the processes that they
// see are those that weir sees. It loads none itself.
package bpf

import "github.com/weir-io/weir/internal/fault"

// Unavailable says why something cannot be done here that takes BPF programs.
type Unavailable struct {
	Op     string // what cannot be done: "trace"
	Reason string // what was found on this host
	Remedy string // what would make it possible; may be empty
	Err    error  `json:"-"` // what the kernel answered, if it was asked
}

func (e *Unavailable) Error() string {
	s := e.Op + ": " + e.Reason
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *Unavailable) Unwrap() error { return e.Err }

// Class makes it fault.NotPossible.
func (e *Unavailable) Class() fault.Class { return fault.NotPossible }

// Needs is the remedy for a kernel that lacks something. kernel is the first version that
// has it: "5.10".
func Needs(kernel string) string {
	return "boot Linux " + kernel + " or later, with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF"
}
