// Package state keeps weir's records. It knows files and locks, not what a record means. Two kinds of
// places have records:
//
//   - A Dir (/run/weir; a user's own for users) has records of changes in progress: a group that a
//     running command is in, a set of rules half written, a mounted scratch disk. The owner of a
//     record holds it locked (flock(2)) as long as it lives. The kernel drops the lock when the owner
//     dies in any way. So if a record can be locked, somebody must clean up (Sweep). /run is empty
//     after a boot, and so are the things that the records describe.
//   - A Store is a folder below /var/lib/weir with records of what survives a boot: volumes, quotas,
//     saved limits. Those of plans are there too, and mean nothing after a boot (ForBoot).
//
// Each record is one file of JSON of at most 1 MiB, and of a name that it says itself. A reader sees
// the text before a change or the one after, also after a power cut. weir reads only regular files that
// belong to root or to its user and that nobody else can write to. Whatever else is at the place of a
// record is a DamagedError, which names the file and ends no work on others. A record that is cut short
// in a Dir is none: nothing was done yet when its owner died.
//
// # Locks
//
// Whoever changes something locks it, reads what is on record, writes, and unlocks. The kernel drops the
// lock of a process that ends, so none is ever stale. What is locked is one of three things:
//
//   - a name: the limits of a group, the plans of a kind, all saved limits (Dir.Wait). The wait is
//     bounded, and its error names the process that has the lock.
//   - a folder, for choosing among its records (Folder.Lock).
//   - one file, for as long as a process lives or works: a Dir's record, a Store's (Hold), and that of
//     the one pacer of the host (Own).
//
// Folders are locked before their records, and names in an order that their users fix.
//
// Journals and histories are no records: they grow, and have checksums for what a crash cuts
// (packages journal and history). systemd's files are not weir's to keep like this (package durable).
package state
