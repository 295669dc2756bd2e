// Package trace says where the time of reads, writes and fsyncs goes, with BPF programs in the
// kernel (bpf/trace.bpf.c) that are gone when weir ends.
//
// Start attaches the programs and makes a Session. While it runs, Frames makes what a live view
// shows. End detaches the programs and returns a Traced: the report, with what was read about the
// host and the target beside it. What a report's causes mean is in its advice.
//
// # What is measured
//
// An operation begins at the entry of its system call and ends when the call returns. The
// programs are at the functions of the calls that do I/O (__x64_sys_write), so that other calls
// cost nothing, of whichever process. Where the kernel refuses that, they are at raw_syscalls:
// then the kernel takes each call of the host along its slow path, and Missing says so. If a
// freezer or memory.high stops the task on its way back, it ends when the task is resumed, up
// to a millisecond later. Its time is cut wherever the task gets or loses a processor, or
// enters or leaves reclaim. Each piece belongs to one Part, so the parts add up to the whole
// time, and tests compare them with the load's own clock. Page faults that wait for mapped files
// are operations too. 32-bit programs are not traced.
//
// A request of io_uring is an operation from its submission to its completion. While a task
// works on it, the submitter or a worker, its time is cut as for a system call. In between, it
// is kept under its address and cut by the stages of its own I/O. The rest is the wait for a
// worker, for requests that it is linked to, and of the result for the program. A request of
// io_submit(2) (libaio) is treated the same way, and ends when io_getevents(2) returns its
// result. A program that reads the result from the ring itself is not seen: then the request
// ends with its last I/O, when the next request takes its place. Not known are the processor
// time of linked requests, requests without a result, and requests whose results did not fit
// into the ring.
//
// # How a wait is recognized
//
// When a task of the target sleeps within an operation, the functions on its stack tell why
// (waits.go; addresses are from /proc/kallsyms). That needs no hook for each function,
// recognizes waits without a tracepoint, such as locks and journals, and works on kernels from
// 5.10 to 7.3. If the task sleeps for I/O, the time is split by the stages of the task's own
// I/O that completed last, because a task usually waits for its last I/O. The stages are
// between blk-throttle's own entry (the block layer's tracepoints come after the throttle), its
// release (block_bio_queue), the device (block_rq_issue) and the completion. Where blk-throttle's
// entry takes no BPF program, the I/O that the throttle's thread releases shows until when the
// group's I/O on that disk was held.
//
// I/O that is charged to the target's group and that none of its operations waits for, such as
// writeback by the kernel's flushers, is summed separately (Behind).
//
// # What may be missing
//
// Each hook is tried separately. Without the entries and ends of system calls and sched_switch
// there is no trace; Missing lists what other missing hooks hide. All maps are bounded, and Lost
// counts what did not fit.
//
// The kernel does not start a program on a processor where another task was preempted within
// it. From 7.0 on tracepoints can be preempted, so there the programs are perf's, if the
// tracepoint's record has what they need (bpf/trace_events.h). Functions can be preempted on each
// kernel that preempts itself; from 6.10 on the programs there forbid it. What is still left out
// is counted (missed.go), and an operation that becomes uncertain because of it is only in Unseen.
//
// # What it leaves
//
// A trace changes nothing. What it loads into the kernel belongs to open files of the weir process,
// and nothing is pinned. When weir ends, even after kill -9, the kernel removes it all.
//
// # What it costs
//
// The state of an operation is in an array indexed by thread id. For threads outside the target,
// each hook costs one array lookup, plus one cgroup check for each traced call.
package trace
