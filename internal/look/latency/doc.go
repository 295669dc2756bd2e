// Package latency shows how much a memory limit slows buffered writes, by an experiment. It writes a file in blocks through the page cache, once in
// a group without a memory limit and once in one with a limit (and once more with direct I/O).
// It records the time of every write, and a trace says where the time went.
//
// A container's writes slow down at its memory limit because page cache counts as its memory
// (cgroup-v2.rst, "Memory"; memory.rst of v1, 2.2.3 "Shared Page Accounting"): the kernel must
// free an old page for each new one. The experiment shows how much that costs on this host.
//
// Prepare finds the device and decides what holds there, before anything is done. Prepared.Measure
// does the runs and ends in a Report.
//
// The groups are those of package launch, made and recorded as for weir run. The package prints
// nothing. If tracing is not available, it still returns the times.
package latency
