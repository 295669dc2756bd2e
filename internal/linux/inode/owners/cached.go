package owners

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/pagecache"
)

// cached is an open file as far as it is in the page cache.
type cached struct {
	*os.File
	overlay bool
}

const (
	// folioMax is the largest folio with pages of 4 KiB: a folio that is only partly in a range
	// stays cached.
	folioMax = 2 << 20
	// stretch is how much is written back before the next look at the context.
	stretch = 2 * folioMax
)

// letGo writes the file's dirty pages and drops the clean ones from the page cache, a part at a
// time. Pages that are mapped, locked or dirtied again meanwhile stay.
func (c cached) letGo(ctx context.Context) error {
	st, err := c.Stat()
	if err != nil {
		return err
	}
	for at := int64(0); at < st.Size(); at += stretch {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.letGoOf(at, stretch); err != nil {
			return err
		}
	}
	return nil
}

// letGoOf is letGo for a range.
func (c cached) letGoOf(at, n int64) error {
	if err := c.writeBack(at, n); err != nil {
		return err
	}
	return pagecache.Drop(c.File, at, n)
}

// writeBack writes the dirty pages of a range and waits for them. sync_file_range(2)
// asks no disk to empty its cache and no journal to commit; on an overlay it does
// nothing, since the pages are another inode's.
func (c cached) writeBack(at, n int64) error {
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	for {
		op, err := "sync_file_range", error(nil)
		if c.overlay {
			op, err = "fdatasync", unix.Fdatasync(int(c.Fd()))
		} else {
			err = unix.SyncFileRange(int(c.Fd()), at, n, all)
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &os.PathError{Op: op, Path: c.Name(), Err: err}
		}
		return nil
	}
}
