// Package load makes I/O of a known kind and counts it: writes or reads of one file by
// one path through the kernel, in blocks of a given size, for a given time. While it runs
// it says how far it is, ten times a second, on the clock that all processes share.
//
// # What a run does
//
// The blocks of the file are done in their order, or, Random, each once a round in an
// order that only looks like chance and is the same in each run. At the end of the file
// it goes round.
//
// Reads through the page cache are cold: the file is evicted first, each stretch again
// once it was read, and the whole again before each further round; readahead works as
// it does for anybody, but for jobs that are Random or Alone. What the kernel would not
// give up is counted as Cached. No other file's pages are touched.
//
// Writes are of bytes that neither compress nor repeat. A file named by Dir has no name
// and goes with its last process, whatever ends that: nothing is left to clean up. It
// is made by the process that writes, because on cgroup v2 an inode's writeback belongs
// to the group that dirtied it first (Documentation/admin-guide/cgroup-v2.rst,
// "Writeback"). But the process's end can take long: the kernel waits for what of the
// file is on its way to the disk.
//
// # The counting
//
// The window that is counted starts as an operation ends, after Warm, and ends as one
// ends. Buffered writes count once they are in memory. The loop runs on a thread of its
// own, allocates nothing, and writes its ticks itself, between operations: on a machine
// of one processor nobody else would get to do it.
//
// It knows no limits and no groups: the process that calls it is in whatever group it
// is in.
package load
