// Package state keeps weir's records of changes in progress: a group that a running command is
// in, a set of rules half written, a mounted scratch disk. A record is a file in /run/weir that
// its owner holds locked (flock(2)) as long as it lives. The kernel drops the lock when the
// owner dies in any way. So if a record can be locked, somebody must clean up. /run is empty
// after a boot, and so are the things that the records describe.
//
// The package knows files and locks, not what a record means: each package that makes records
// cleans up its own kind.
package state
