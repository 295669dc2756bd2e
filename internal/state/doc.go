// Package state keeps weir's records of what it has under way: a group that a
// running command lives in, a set of rules half written, a scratch disk mounted. A
// record is a file in /run/weir that its owner holds locked (flock(2)) for as long
// as it lives. The kernel drops the lock when the owner dies in any way, so a
// record that can be locked is one that somebody must clean up after. /run is
// empty after a boot, as are the things that the records speak of.
//
// It knows files and locks, not what a record means: each package that makes
// records cleans up after its own kind.
package state
