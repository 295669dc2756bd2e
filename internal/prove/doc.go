// Package prove measures whether a limit holds. It makes I/O of a known kind inside
// the limited group (package load), or watches what runs there, and compares three
// places with the limit: what the writer saw, what the group was charged
// (Documentation/admin-guide/cgroup-v2.rst, io.stat; blkio-controller.rst,
// throttle.io_service_bytes) and what the device did (Documentation/block/stat.rst).
//
// It stands on what blk-throttle promises (block/blk-throttle.c): it gives out slices
// of about 100 ms, lets one slice through at the start and up to two after a stall, and
// a request that is larger than a slice's budget passes late and whole. So within any
// time W a held group does at most rate × (W + 0.2 s) and one request. More than that was not held; what is
// near the rate was; and what is neither, weir does not guess about.
//
// It refuses to call a limit held that was not tried: a slow disk, a cached read and
// a starved machine give "cannot tell", with the reason.
package prove
