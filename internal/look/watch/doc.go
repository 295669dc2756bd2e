// Package watch reads what limits are in force and what I/O happens under them. It only reads.
//
// A Watcher reads all groups of a hierarchy again and again, and makes a Snapshot each time: what
// each group reads and writes on each device, beside its limits, what is expected to hold them,
// how long its tasks wait, and what waits in memory to be written; and what the disks do. It is
// one model for several views: weir top, the metrics of weird.
//
// Find, Of and Measure are for one look at the groups that have limits.
//
// The Watcher keeps each group's counter file open and reads it once. On v2 the counters of a group
// include the groups below it, so it does not read below a group whose counters stay. On v1 the kernel
// adds up the counters of a group and of those below it: a Watcher that follows (Options.Follow) reads
// the groups that moved lately, and no other one if that explains the sum.
//
// Pressure and dirty pages are read of groups that moved, and of the others every 15 seconds. A Watcher
// that follows is told by inotify of groups that come and go, and of written limits, and reads those
// then; all limits are read again every 5 minutes. It asks who a group is when the group is new, when
// its limits change, and each minute if the group does I/O.
//
// A Watcher starts nothing, also no pacer in the place of a dead one: until a guard or another weir
// does that, the group is shown as lapsed.
//
// Rates are over the time between two readings of that very group. A group that is new, or whose
// counters went back, has none. Percentages are of the group's own rule.
//
// 2,000 groups at rest take 6 ms of processor time for a reading, and 25 ms if all of them move
// (BenchmarkSample, on plain files, on a machine that did other work).
package watch
