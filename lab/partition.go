package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Partition writes a table with one Linux partition over nearly all of a raw
// disk, and gives the partition's node.
func Partition(t testing.TB, d *TestDisk) string {
	t.Helper()
	f := Lock(t, d)
	if err := writeTable(f); err != nil {
		t.Fatalf("write partition table of %s: %v", d.Node, err)
	}
	var node string
	Await(t, 10*time.Second, "a partition of "+d.Node, func() bool {
		found, err := filepath.Glob("/sys/dev/block/" + d.Number.String() + "/*/partition")
		if err != nil || len(found) == 0 {
			return false
		}
		node = "/dev/" + filepath.Base(filepath.Dir(found[0]))
		_, err = os.Stat(node)
		return err == nil
	})
	t.Cleanup(func() {
		// Otherwise a loop device keeps its partitions for the next user.
		if err := wipe(d.Node); err != nil {
			t.Errorf("remove partition: %v", err)
		}
	})
	return node
}

// PartitionNode waits for the node of a disk's n-th partition.
func PartitionNode(t testing.TB, d *TestDisk, n int) string {
	t.Helper()
	node := d.Node + strconv.Itoa(n)
	if last := d.Node[len(d.Node)-1]; last >= '0' && last <= '9' {
		node = fmt.Sprintf("%sp%d", d.Node, n)
	}
	Await(t, 10*time.Second, "partition "+node, func() bool {
		_, err := os.Stat(node)
		return err == nil
	})
	return node
}

// Lock keeps udev away from a disk until the end of the test: it reads the table of one
// again that was written to, and the partitions are not there meanwhile. It waits for who
// has this lock (systemd's "Locking Block Device Access").
func Lock(t testing.TB, d *TestDisk) *os.File {
	t.Helper()
	f, err := os.OpenFile(d.Node, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatalf("lock %s: %v", d.Node, err)
	}
	return f
}

// writeTable writes an MBR: one entry of type 0x83 from 1 MiB to 1 GiB.
func writeTable(disk *os.File) error {
	const start, sectors = 2048, 2 << 20
	var mbr [512]byte
	entry := mbr[446:462]
	entry[4] = 0x83
	binary.LittleEndian.PutUint32(entry[8:], start)
	binary.LittleEndian.PutUint32(entry[12:], sectors)
	mbr[510], mbr[511] = 0x55, 0xaa
	_, err := disk.WriteAt(mbr[:], 0)
	return errors.Join(err, disk.Sync(), rereadPartitions(disk))
}

// rereadPartitions retries: a probe for file systems may hold the disk just now.
func rereadPartitions(f *os.File) error {
	var err error
	for range 20 {
		_, err = unix.IoctlRetInt(int(f.Fd()), unix.BLKRRPART)
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("read partition table: %w", err)
	}
	return nil
}
