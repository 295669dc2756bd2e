// Package vm resolves targets of the kind vm:NAME: a running domain of libvirt's QEMU or
// LXC driver, by its name.
//
// libvirt notes the first process of each in /run/libvirt/DRIVER/NAME.pid. The group is
// the one that the kernel has that process in: below a scope that systemd-machined makes
// in machine.slice, or in one of libvirt's own.
package vm
