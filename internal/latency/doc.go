// Package latency is an experiment: a file is copied in blocks through the page cache,
// once in a group without a limit on memory and once with one (and once more past the
// page cache), the time of every write is kept, and a trace says where it went.
//
// A container's writes slow down at its memory limit because page cache counts as its
// memory (cgroup-v2.rst, "Memory"; memory.rst of v1, 2.2.3 "Shared Page Accounting"): a
// new page first frees an old one. The experiment shows how much on this host.
//
// The groups are those of package launch, made and recorded as for weir run. It prints
// nothing, and needs no trace: where none can be had the times are there all the same.
package latency
