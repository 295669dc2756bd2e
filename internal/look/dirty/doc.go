// Package dirty looks at dirty and writeback pages over time, of the host and of one
// memory cgroup, beside the thresholds from which on the kernel throttles writers. It
// mirrors the settings of Documentation/admin-guide/sysctl/vm.rst (dirty_*) and what
// balance_dirty_pages in mm/page-writeback.c makes of them. It reads files only. Look ends in a
// Report.
package dirty
