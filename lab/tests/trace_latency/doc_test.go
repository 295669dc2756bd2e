// Package latency_test runs on real kernels what a container's slow buffered writes are
// looked into with: weir trace --latency, without and with a memory limit; tiny
// thresholds for dirty pages; direct I/O beside both.
package latency_test
