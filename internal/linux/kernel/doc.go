// Package kernel reads what a kernel says of itself, as far as disk I/O limits depend
// on it: its version, what it was built with, the settings of dirty pages and what
// they come to, the backing devices' bounds, and the areas of swap.
//
// It mirrors Documentation/admin-guide/sysctl/vm.rst (the six dirty_* settings),
// Documentation/ABI/testing/sysfs-class-bdi, and for dirty pages /proc/vmstat, where
// mm/page-writeback.c shows the thresholds that it computes. It only reads, below a
// root, and judges nothing.
package kernel
