package blkdev_test

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// subvolume makes a btrfs subvolume (BTRFS_IOC_SUBVOL_CREATE, include/uapi/linux/btrfs.h).
func subvolume(t *testing.T, dir, name string) {
	t.Helper()
	const subvolCreate = 0x5000940e
	var args struct {
		fd   int64
		name [4088]byte
	}
	copy(args.name[:], name)
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), subvolCreate, uintptr(unsafe.Pointer(&args))); errno != 0 {
		t.Fatalf("make subvolume %s in %s: %v", name, dir, errno)
	}
}
