package tracer

import (
	"slices"

	"github.com/weir-io/weir/internal/look/trace"
)

// opcodes are io_uring's requests that do I/O to files, by number
// (include/uapi/linux/io_uring.h). READ_MULTISHOT is left out: it does not work on files of a
// disk.
func opcodes() map[int]call {
	return map[int]call{
		1:  {kind: trace.Read},  // READV
		2:  {kind: trace.Write}, // WRITEV
		3:  {kind: trace.Fsync}, // FSYNC
		4:  {kind: trace.Read},  // READ_FIXED
		5:  {kind: trace.Write}, // WRITE_FIXED
		8:  {kind: trace.Fsync}, // SYNC_FILE_RANGE
		22: {kind: trace.Read},  // READ
		23: {kind: trace.Write}, // WRITE
		30: {kind: trace.Write}, // SPLICE
		60: {kind: trace.Read},  // READV_FIXED
		61: {kind: trace.Write}, // WRITEV_FIXED
	}
}

// opcodesMax is OPCODES_MAX of bpf/trace.h.
const opcodesMax = 64

// opcodesOf returns the requests of some kinds, by number.
func opcodesOf(kinds []trace.Kind) (all [opcodesMax]uint8) {
	for number, c := range opcodes() {
		if slices.Contains(kinds, c.kind) {
			all[number] = c.bits()
		}
	}
	return all
}

// askedNames are the names of the tracepoint at a request's start: in 6.12 and later, in 6.1.
var askedNames = []string{"io_uring_submit_req", "io_uring_submit_sqe"}

// uringHooks returns the hooks for requests of io_uring: none on kernels without io_uring.
func (t *Tracer) uringHooks(kinds []trace.Kind) []hook {
	if opcodesOf(kinds) == [opcodesMax]uint8{} || !t.hasTracepoint("io_uring_create") {
		return nil
	}
	seen := hook{name: "io_uring:io_uring_submit_req, _queue_async_work, _cqring_wait, _complete", without: "io_uring requests are not traced",
		programs: []string{traceProgRequestAnswered, traceProgRequestPunted, traceProgRequestsAwaited, traceProgRequestAsked},
		before:   []string{traceProgRequestAnsweredEvent, traceProgRequestPuntedEvent, traceProgRequestsAwaitedEvent, traceProgRequestAskedEvent}}
	asked := t.spec.Programs[traceProgRequestAsked]
	i := slices.IndexFunc(askedNames, t.hasTracepoint)
	if i >= 0 {
		asked.AttachTo = askedNames[i]
	}
	// The tracepoints of 5.10 have the ring and the program's own number, which need not be
	// unique; those of 6.1 have the request.
	if _, ok := t.argument(asked.AttachTo, "io_kiocb"); !ok {
		seen.unfit = "the kernel's tracepoints do not identify the request"
		return []hook{seen}
	}
	worker := []string{"io_wq_submit_work"}
	return []hook{seen, {name: "fentry of io_uring's workers", programs: []string{traceProgWorkerBegan}, functions: worker,
		without:  "work of io_uring workers counts as io_uring",
		fallback: &hook{name: "kprobe of io_uring's workers", programs: []string{traceProgWorkerBeganKprobe}, functions: worker}}}
}
