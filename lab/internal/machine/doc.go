// Package machine runs guests that are a process of this host. What carries one is
// user-mode Linux or QEMU; what it boots, a small system or a full one, is for other
// packages to say. All have the same disks, orders, time and results.
//
// User-mode Linux is a kernel that runs as a program: one processor, a boot of a
// second or two, and hundreds of megabytes a second, so rates are measured in it.
// QEMU emulates a whole PC (no KVM is asked for): it has what user-mode Linux lacks,
// such as BPF, but no rates above some 15 MB/s.
package machine
