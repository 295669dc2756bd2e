package blkdev_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// image makes a sparse file on a disk of the lab, which is returned too.
func image(t *testing.T, bytes int64) (string, *lab.TestDisk) {
	t.Helper()
	disk := lab.Disk(t, lab.FS("ext4"))
	p := filepath.Join(disk.Dir, "disk.img")
	f, err := os.Create(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(bytes); err != nil {
		t.Fatal(err)
	}
	return p, disk
}

// attach puts an image on a loop device until the test ends, and returns its node.
func attach(t *testing.T, img string, flags uint32) string {
	t.Helper()
	f, err := os.OpenFile(img, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctl, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ctl.Close()
	for range 32 { // others take loop devices as well: one that was free may not be any more
		n, err := unix.IoctlRetInt(int(ctl.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Fatal(err)
		}
		node := fmt.Sprintf("/dev/loop%d", n)
		dev, err := os.OpenFile(node, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		cfg := unix.LoopConfig{Fd: uint32(f.Fd()), Info: unix.LoopInfo64{Flags: flags}}
		copy(cfg.Info.File_name[:], img)
		err = unix.IoctlLoopConfigure(int(dev.Fd()), &cfg)
		dev.Close()
		if errors.Is(err, unix.EBUSY) {
			continue
		}
		if err != nil {
			t.Fatalf("configure %s: %v", node, err)
		}
		t.Cleanup(func() { detach(t, node) })
		return node
	}
	t.Fatal("no free loop device in 32 tries")
	return ""
}

func detach(t *testing.T, node string) {
	dev, err := os.OpenFile(node, os.O_RDWR, 0)
	if err == nil {
		err = unix.IoctlSetInt(int(dev.Fd()), unix.LOOP_CLR_FD, 0)
		dev.Close()
	}
	if err != nil {
		t.Errorf("detach %s: %v", node, err)
	}
}

// partition adds a partition by BLKPG, which needs no
// partition table and no kernel that can read one (include/uapi/linux/blkpg.h).
func partition(t *testing.T, node string, number int32, start, length int64) string {
	t.Helper()
	part := unix.BlkpgPartition{Start: start, Length: length, Pno: number}
	arg := unix.BlkpgIoctlArg{Op: unix.BLKPG_ADD_PARTITION, Datalen: int32(unsafe.Sizeof(part)), Data: (*byte)(unsafe.Pointer(&part))}
	if err := blkpg(node, &arg); err != nil {
		t.Fatalf("add partition %d to %s: %v", number, node, err)
	}
	t.Cleanup(func() {
		arg.Op = unix.BLKPG_DEL_PARTITION
		if err := blkpg(node, &arg); err != nil {
			t.Errorf("delete partition %d of %s: %v", number, node, err)
		}
	})
	return fmt.Sprintf("%sp%d", node, number)
}

func blkpg(node string, arg *unix.BlkpgIoctlArg) error {
	f, err := os.Open(node)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.BLKPG, uintptr(unsafe.Pointer(arg))); errno != 0 {
		return errno
	}
	return nil
}

func tool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// mount mounts until the test ends.
func mount(t *testing.T, source, fstype string, flags uintptr, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount(source, dir, fstype, flags, options); err != nil {
		t.Fatalf("mount %s on %s (%s): %v", fstype, dir, source, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// appears waits for a node, for which the kernel and udev take a moment.
func appears(t *testing.T, p string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(p); err == nil {
			return
		}
	}
	t.Fatalf("%s did not appear in 5 s", p)
}
