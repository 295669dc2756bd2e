// Package limits_test measures that the limits weir sets are held by real kernels:
// weir run, set and clear on real disks and file systems, achieved rate ÷ limit. The
// tolerances are the kernel's own accuracy over five seconds, the first slices left
// out.
package limits_test
