// Package fullguest boots whole Debian systems in the lab: systemd as process 1,
// with Docker, containerd, Podman and libvirt's LXC driver installed and not
// running, for tests of what small guests have not.
//
// An image is a root file system that mmdebstrap makes of one suite, with the
// files below root/ laid over it and everything masked that would start by
// itself. It is cached by its recipe, and guests write to a copy-on-write file
// beside it, so it stays as it was built. The kernel is another entry of the
// cache: any kernel boots any image, since modules come on a disk of their own.
//
// One unit, weir-lab.service, runs the lab's agent after basic.target and
// switches the machine off; the agent, the job and the disks are those of a small
// guest, so a test finds the same environment in both. Daemons are started by
// the tests that need them: "systemctl start docker". Containers have no network
// ("--network none"), for there is no bridge.
//
// There are two lanes. On user-mode Linux kernels with its seccomp mode (6.16 and
// later) boot in about 4 s; older ones, which trace each system call, take 15 s and
// start daemons at a quarter of the speed. A cloud kernel under QEMU has BPF, and takes
// twice to three times as long; it boots an initramfs, whose init is the lab's own,
// that goes over to the root disk.
package fullguest
