// Package watch_test compares what weir's views of running I/O say (weir top, the metrics of
// weird, weir show) with the kernel's own counters, and with each other, under loads of known
// rates.
package watch_test
