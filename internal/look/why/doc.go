// Package why says which I/O a limit holds, which not, and why, without running a load. It
// reads the facts of a host once (Gather) into plain structs, and small pure rules judge them
// (Judge). Each finding has a stable code, a severity, what was seen and where, a text, and
// what to do. From the findings follows a matrix: each path of I/O, read and write, with the
// mechanism that holds it, if any.
//
// The rules mirror Documentation/admin-guide/cgroup-v2.rst ("IO", "Writeback"),
// cgroup-v1/blkio-controller.rst, admin-guide/sysctl/vm.rst and ABI/testing/sysfs-class-bdi. A
// finding about one kernel names the commit that fixes it.
//
// It neither measures nor guesses: where a host does not tell, it says so.
//
// It changes nothing; weir why --mend does (package mend).
package why
