// Package partial counts by how much write_bytes of a group's processes (/proc/PID/io) exceeds what
// they have written.
//
// The kernel counts a whole folio, the unit in which the page cache keeps a file, when it
// becomes dirty (folio_account_dirtied in mm/page-writeback.c). It writes back only the blocks
// that are dirty. A write of 4 KiB into a folio of 1 MiB counts 256 times.
//
// A Watcher sees by BPF which blocks become dirty, and returns the difference:
//
//   - On ext4, and other file systems with buffer heads, it is exact, with one exception. Where
//     ext4 allocates blocks at once (nodelalloc, or a file system that is nearly full), it does not
//     see a store into a mapping of a folio that is partly dirty already.
//   - On XFS it is exact for the first dirty blocks of a folio, and an upper bound for later writes,
//     when each is over: a block that is written again while it is dirty counts again, up to the
//     size of the folio. A store into a mapping makes a folio dirty whole, so it counts all that
//     was taken off before, up to the largest folio.
//   - On other file systems it returns nothing, and what they count stays counted.
//
// Of a group of cgroup v2 it can count only what is in files of other groups, by disk. It then
// leaves out files that have no owner yet, as package escape does.
package partial
