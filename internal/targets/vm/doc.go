// Package vm resolves targets of the kind vm:NAME: a running domain of libvirt's QEMU or LXC
// driver, by its name.
//
// libvirt stores the first process of each domain in /run/libvirt/DRIVER/NAME.pid. The group is
// the one that the kernel reports for that process: below a scope that systemd-machined makes
// in machine.slice, or in a group that libvirt makes itself.
package vm
