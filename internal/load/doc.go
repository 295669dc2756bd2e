// Package load makes I/O of a known kind and counts it: writes or reads of one file,
// direct, buffered or synchronous, in blocks of a given size, for a given time.
//
// It knows no limits and no groups: the process that calls it is in whatever group
// it is in.
package load
