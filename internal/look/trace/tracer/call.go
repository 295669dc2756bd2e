package tracer

import "github.com/weir-io/weir/internal/look/trace"

// A call is what a system call does.
type call struct {
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
