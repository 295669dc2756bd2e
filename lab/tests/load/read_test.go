package load_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// All data of a cold read comes from the disk, also when the load reads the file again and
// again.
func TestLoadReadsAreCold(t *testing.T) {
	eachFS(t, func(t *testing.T, disk *lab.TestDisk) {
		file := prepare(t, disk)
		for _, path := range []load.Path{load.Buffered, load.Mapped, load.Direct} {
			r := do(t, disk, load.Job{Path: path, Read: true}, file)
			// As it ends, the kernel has read ahead: at most to the end of the file.
			around(t, string(path)+" bytes read by the disk", r.disk.ReadBytes, r.total.Bytes, size-r.total.Bytes%size)
			if r.Cached != 0 {
				t.Errorf("%s: %d bytes are said to come from the cache", path, r.Cached)
			}
		}
	})
}

// A random read is one request of its own size at the disk. So is a sequential read of a job
// that reads alone.
func TestLoadRandomReadsAreRequests(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV2, lab.Rates, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	file := prepare(t, disk)
	for _, path := range []load.Path{load.Buffered, load.Direct, load.Mapped} {
		for _, random := range []bool{true, false} {
			r := do(t, disk, load.Job{Path: path, Read: true, Random: random, Alone: !random, Block: 8 << 10}, file)
			around(t, string(path)+" requests", r.disk.Reads, r.total.Ops, 16)
			around(t, string(path)+" bytes", r.disk.ReadBytes, r.total.Bytes, 16*8<<10)
		}
	}
}

// If the kernel cannot evict data, the load reads it from the cache, and says how much.
func TestLoadWarmReadsAreTold(t *testing.T) {
	lab.Need(t, lab.Rates)
	eachFS(t, func(t *testing.T, disk *lab.TestDisk) {
		file := prepare(t, disk)
		m, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Munmap(m) }()
		r := do(t, disk, load.Job{Path: load.Buffered, Read: true}, file)
		if r.Cached != r.Bytes || r.disk.ReadBytes > size {
			t.Errorf("%d of %d bytes are said to come from the cache; the disk read %d", r.Cached, r.Bytes, r.disk.ReadBytes)
		}
	})
}
