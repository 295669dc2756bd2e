// Package kernel turns Debian's kernel packages into a kernel image and a folder
// of modules. There are two kinds: the cloud flavour for QEMU, and user-mode
// Linux, which is a program of the host and brings its suite's C library along
// because the host's may be older.
package kernel
