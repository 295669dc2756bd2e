// Package watch reads what is in force and what happens. It only reads.
//
// A Watcher reads all groups of a hierarchy again and again, and makes a Snapshot each time: what
// each group reads and writes on each device, beside its limits, what is expected to hold them,
// how long its tasks wait, and what waits in memory to be written; and what the disks do. It is
// one model for several views: weir top, the metrics of weird.
//
// Find, Of and Measure are for one look at the groups that have limits.
package watch
