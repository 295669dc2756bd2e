// Package why says what of a limit holds, what does not, and why, without running a
// load. It reads the facts of a host once (Gather), into plain structs, and lets small
// pure rules judge them (Judge): each finding has a stable code, a severity, what was
// read and where, a sentence, and what to do. From the findings follows a matrix: each
// path of an I/O, read and write, with the mechanism that holds it, or not.
//
// The rules mirror Documentation/admin-guide/cgroup-v2.rst ("IO", "Writeback"),
// cgroup-v1/blkio-controller.rst, admin-guide/sysctl/vm.rst and
// ABI/testing/sysfs-class-bdi; a finding about one kernel names the commit that ends it.
//
// It refuses to measure, and to guess: what cannot be told on a host is said to be so.
package why
