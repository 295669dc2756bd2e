// Package cgroupfs reads and writes the files of the cgroup v1 blkio and the v2 io
// controllers, and the few others that a group needs (cgroup.procs,
// cgroup.subtree_control, memory limits). It mirrors
// Documentation/admin-guide/cgroup-v1/blkio-controller.rst and
// Documentation/admin-guide/cgroup-v2.rst.
//
// Hierarchies are found in mountinfo, wherever they are mounted. Every file is
// opened beneath its hierarchy's root by openat2(2), without symbolic or magic
// links and without crossing a mount, and the root's file system type is checked:
// names of groups come from containers and are not trusted.
//
// It knows grammars and files, not policy: who may write a rule, and whether the
// rule will hold, are questions for the packages above it.
package cgroupfs
