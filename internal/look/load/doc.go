// Package load makes I/O of a known kind and counts it: writes or reads of one file by
// one path through the kernel, in blocks of a given size, for a given time. While it runs
// it reports its progress ten times a second, on the clock that all processes share.
//
// # What a run does
//
// A run goes through the blocks of the file in their order and starts again at the end. If Random
// is set, it takes each block once a round, in an order that only looks like chance and is the
// same in each run.
//
// Reads through the page cache are cold. The run evicts the file first, each stretch again after
// it was read, and the whole file again before each further round. Readahead works as for any
// program, except for jobs that are Random or Alone. Pages that the kernel does not give up are
// counted as Cached. No other file's pages are touched.
//
// Writes are of bytes that neither compress nor repeat. A file named by Dir has no name, and the
// kernel removes it with its last process, so nothing is left to clean up. The process that
// writes makes the file, because on cgroup v2 an inode's writeback belongs to the group that
// dirtied it first (Documentation/admin-guide/cgroup-v2.rst, "Writeback"). The end of that process
// can take long: the kernel waits for writeback of the file that is in progress.
//
// # The counting
//
// The counted window starts as an operation ends, after Warm, and ends as one ends. Buffered
// writes count once they are in memory. The loop runs on a thread of its own, allocates nothing,
// and writes its ticks itself between operations: on a machine with one processor no other
// thread would get to run.
//
// The package knows no limits and no groups: the process that calls it is in a group already.
package load
