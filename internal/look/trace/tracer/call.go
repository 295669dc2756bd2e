package tracer

import "github.com/weir-io/weir/internal/look/trace"

import (
	"runtime"
)

// A call is what a system call does.
type call struct {
	function string // of the kernel, without the prefix that its architecture gives it
	kind     trace.Kind
	argument int  // which is the file
	anyFile  bool // it takes no file of a disk
	aio      bool // io_submit; io_getevents if it is a Read
	sendfile bool // from the file that is its second argument, where the first is none
}

// callsMax is CALLS_MAX of bpf/trace.h.
const callsMax = 512

// Bits of a call in bpf/trace.h.
const (
	callFDShift  = 2
	callAnyFile  = 0x10
	callSendfile = 0x20
	callAIO      = 0x40
	callTaken    = 0x80
)

func (c call) bits() uint8 {
	b := uint8(c.kind) | uint8(c.argument)<<callFDShift | callTaken
	if c.anyFile {
		b |= callAnyFile
	}
	if c.sendfile {
		b |= callSendfile
	}
	if c.aio {
		b |= callAIO
	}
	return b
}

// callsOf returns the system calls of some kinds, by number. sendfile(2) can be a read or a
// write, which shows only when it runs. splice(2) from a file to a pipe is not included.
func callsOf(kinds []trace.Kind) (all [callsMax]uint8) {
	for number, c := range systemCalls() {
		for _, k := range kinds {
			if c.kind == k || c.sendfile && k == trace.Read || c.aio && k != trace.Fault {
				all[number] = c.bits()
			}
		}
	}
	return all
}

// callPrefixes are what the kernel's names of its calls' functions begin with, by architecture
// (arch/*/include/asm/syscall_wrapper.h).
var callPrefixes = map[string]string{"amd64": "__x64_sys_", "arm64": "__arm64_sys_"}

// ofNothing is what the names of functions of calls without arguments begin with: on amd64 the
// others are names for the same functions, which the kernel's types do not have.
const ofNothing = "__do_sys_"

// functions are the names that the function of a call can have.
func (c call) functions() []string {
	names := []string{callPrefixes[runtime.GOARCH] + c.function}
	if c.function == "sync" {
		names = append(names, ofNothing+c.function)
	}
	return names
}

// callHooks returns the hooks at the functions of the calls of some kinds, and of the call that
// asks io_uring for something, if such requests are traced. Without CONFIG_AIO a kernel has no
// io_submit.
func callHooks(kinds []trace.Kind, uring bool) (all []hook) {
	for number, bits := range callsOf(kinds) {
		if bits == 0 {
			continue
		}
		c := systemCalls()[number]
		of := stepCall
		switch {
		case c.aio && c.kind == trace.Read:
			of = stepReap
		case c.aio:
			of = stepSubmit
		}
		all = append(all, hook{functions: c.functions(), step: of, programs: of.to, optional: c.aio})
	}
	if uring {
		all = append(all, hook{functions: call{function: "io_uring_enter"}.functions(), step: stepUring, programs: stepUring.to})
	}
	return all
}
