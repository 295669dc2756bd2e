// Package trace says where the time of reads, writes and fsyncs goes, by BPF programs in
// the kernel (bpf/trace.bpf.c) that go when weir does.
//
// # What is measured
//
// An operation begins at its system call's entry and ends when the call returns, or when
// the task is let go again if a freezer or memory.high stops it on its way back, and up to
// a millisecond after. Its time is cut wherever the task gets or loses a processor, or
// enters or leaves reclaim, and each piece belongs to one Part, so that the parts are all
// of it. Page faults that wait for mapped files are operations too. 32-bit programs are not
// seen.
//
// A request of io_uring is an operation from its submission to its completion. While a
// task is at it, be it who submits it or a worker, its time is cut as that of a system
// call; in between, by the stages of its own I/O; the rest is the wait for a worker, or for those that it is linked behind, and that of
// an answer for who asked. So is a request of io_submit(2) (libaio), which ends when
// io_getevents(2) gives its answer; who reads that from the ring itself is not seen to, and it
// ends with its last I/O, when the next request takes its place. What linked requests do on a processor is not known, nor are
// requests that are to have no answer, or whose answers did not fit into the ring.
//
// # How a wait is told
//
// When a task of the target sleeps within an operation, the functions on its stack say for
// what (waits.go; addresses are from /proc/kallsyms). That needs no hook for each, names
// what no tracepoint does, such as locks and journals, and holds on kernels from 5.10 to
// 7.3. If it sleeps for I/O, the time is split by the stages of the task's own I/O that
// completed last: a wait is for the last one, as a rule. Those stages are between
// blk-throttle's own entry (the block layer's tracepoints come after the throttle), its
// release (block_bio_queue), the device (block_rq_issue) and the completion.
//
// I/O that is charged to the target's group and that no operation of its waits for, such as
// writeback by the kernel's flushers, is summed by itself (Behind).
//
// # What may be missing
//
// Each hook is tried by itself. Without system calls' tracepoints and sched_switch there
// is no trace; what is not told without another one is in Missing. All maps are bounded,
// and what there was no room for is counted in Lost.
//
// The kernel does not begin a program on a processor where another task was preempted within
// it. From 7.0 on tracepoints can be preempted, so there the programs are perf's where the
// tracepoint's record has what they need (bpf/trace_events.h). What is left out all the same is
// counted (missed.go), and an operation that it makes uncertain is in no figure but Unseen.
package trace
