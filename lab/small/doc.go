// Package small boots small guests: a kernel, an initramfs with the lab's own
// init, and raw disks. There are two lanes. User-mode Linux is a process of the
// host with one processor, boots in a second or two and writes hundreds of
// megabytes a second, so rates are measured in it; QEMU emulates a whole PC
// (no KVM is asked for) and has what UML lacks, but no rates above some 15 MB/s.
package small
