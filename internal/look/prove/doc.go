// Package prove measures whether a limit holds. It makes I/O of a known kind inside the limited
// group (package load), or observes the group's own I/O. It compares three places with the
// limit: what the writer did, what the kernel charged to the group
// (Documentation/admin-guide/cgroup-v2.rst, io.stat; blkio-controller.rst,
// throttle.io_service_bytes) and what the device did (Documentation/block/stat.rst).
//
// A proof has two steps. Prepare finds the places, plans the rows and asks weir why about them. It
// refuses what cannot be measured, and its notes say what is left out. Trial.Measure measures the
// rows. It ends in a Proof, a value with a verdict for each row and the findings behind it.
//
// The package relies on what blk-throttle promises (block/blk-throttle.c). The throttle works in slices
// of about 100 ms, and lets one slice through at the start and up to two after a stall. A
// request larger than a slice's budget passes late and as a whole. So within any time W a held
// group does at most rate × (W + 0.2 s) and one request. More than that is not held, near the
// rate is held, and weir does not guess about anything else.
//
// It does not call a limit held that was not tried: a slow disk, a cached read or a machine
// without a free processor give "cannot tell", with the reason.
package prove
