// Package load_test compares what weir's load says it did with what the disk did: each
// path of I/O, cold and warm reads, on real file systems and kernels.
package load_test
