// Package partial counts how much of what a group's processes have in write_bytes
// (/proc/PID/io) they have not written.
//
// The kernel counts a whole folio, the unit in which the page cache keeps a file, when it
// becomes dirty (folio_account_dirtied in mm/page-writeback.c). It writes back only the blocks
// that are dirty. A write of 4 KiB into a folio of 1 MiB counts 256 times.
//
// A Watcher sees by BPF which blocks become dirty. It knows ext4 and other file systems with
// buffer heads exactly, but for stores into a mapping of a folio that is partly dirty already, where
// ext4 allocates blocks at once (nodelalloc, or a file system that is nearly full): they are not seen. On XFS it knows a folio's first dirty blocks exactly, and those of
// later writes, when each is over, at most: a block that is written again while it is dirty counts again, up to the
// size of the folio. A store into a mapping of such a file counts all that was taken off, up to
// the largest folio, as it makes a folio dirty whole. It knows no other file systems: what they
// count stays counted.
package partial
