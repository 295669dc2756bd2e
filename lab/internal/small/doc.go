// Package small has small guests: a kernel, an initramfs with the lab's own init,
// and raw disks. They boot in a few seconds and have no more than tests need.
package small
