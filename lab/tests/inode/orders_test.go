package inode_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/linux/inode/owners"
)

// do is what hands can do.
func do(ctx context.Context, o order) (any, error) {
	switch o.What {
	case "fill":
		return nil, fill(o.Args[0])
	case "rewrite":
		return rewrite(o.Args[0])
	case "open":
		return open(o.Args[0], o.Args[1])
	case "close":
		fd, err := strconv.Atoi(o.Args[0])
		if err != nil {
			return nil, err
		}
		return nil, unix.Close(fd)
	case "look":
		return look(ctx, o.Args[0])
	case "mend":
		r, err := reader()
		if err != nil {
			return nil, err
		}
		return r.Mend(ctx, o.Args[0])
	}
	return nil, fmt.Errorf("no hand does %q", o.What)
}

// reader is one for the process: to load the program takes long where the processor is
// emulated. It ends with the process.
var reader = sync.OnceValues(func() (*owners.Reader, error) {
	groups, err := cgroupfs.Open("/")
	if err != nil {
		return nil, err
	}
	return owners.Open(groups)
})

func look(ctx context.Context, path string) (inode.File, error) {
	r, err := reader()
	if err != nil {
		return inode.File{}, err
	}
	files, err := r.OfPaths(ctx, []string{path})
	if err != nil {
		return inode.File{}, err
	}
	return files[0], nil
}

// open leaves a file open.
func open(path, flags string) (fd int, err error) {
	n, err := strconv.Atoi(flags)
	if err != nil {
		return -1, err
	}
	return unix.Open(path, n|unix.O_CLOEXEC, 0)
}

const (
	block  = 32 << 10
	blocks = 64
)

func pattern(i int) string { return strings.Repeat(fmt.Sprintf("%07d\n", i), block/8) }

// content is what fill and rewrite write.
func content() string {
	var b strings.Builder
	for i := range blocks {
		b.WriteString(pattern(i))
	}
	return b.String()
}

// fill makes a file and writes it to the disk.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(content()); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

const (
	warm   = 300 * time.Millisecond // the throttle's first slices
	window = 3 * time.Second / 2
	// bound is the limit, in bytes/s.
	bound = 256 << 10
	// pace is as fast as rewrite goes where no limit holds it: enough to tell, and little
	// enough for tests side by side on an emulated processor.
	pace = 3 * bound
)

// rewrite writes a file's blocks anew through the page cache, round and round, waits
// for each to be written back, and returns the rate in bytes/s.
func rewrite(path string) (float64, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var counted time.Time
	bytes := 0
	for i, began := 0, time.Now(); ; i++ {
		at := int64(i%blocks) * block
		if _, err := f.WriteAt([]byte(pattern(i%blocks)), at); err != nil {
			return 0, err
		}
		if err := unix.SyncFileRange(int(f.Fd()), at, block, unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER); err != nil {
			return 0, err
		}
		time.Sleep(time.Until(began.Add(time.Duration(i+1) * time.Second * block / pace)))
		now := time.Now()
		switch {
		case counted.IsZero() && now.Sub(began) > warm:
			counted = now
		case !counted.IsZero():
			bytes += block
			if took := now.Sub(counted); took >= window {
				return float64(bytes) / took.Seconds(), nil
			}
		}
	}
}
