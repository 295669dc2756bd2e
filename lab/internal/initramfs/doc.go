// Package initramfs makes a small guest's root: busybox, the lab's init, the
// modules that the kernel's tests need, and the programs of this host that tests
// call, with their libraries. Weir and the tests are not in it; they come on a
// disk, so that the image can be cached.
package initramfs
