// Package pacer_test measures what weir's pacer holds where the kernel holds nothing:
// buffered writes on cgroup v1, counted at the writer; and that nobody stays stopped,
// whoever is killed.
package pacer_test
