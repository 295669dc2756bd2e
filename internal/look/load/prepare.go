package load

import (
	"context"
	"fmt"
	"os"

	"github.com/weir-io/weir/internal/linux/pagecache"
)

const (
	prepareBlock = 1 << 20
	// prepareStep bounds how much is dirty at a time: no limit applies while a file is
	// prepared, and the host's memory must not fill up.
	prepareStep = 32 << 20
)

// Prepare makes an unnamed file in dir, of size bytes that a load can read: they are on the
// disk, and in no cache as far as the kernel drops them. It vanishes with its last descriptor;
// the process that will read it inherits that ("fd:N").
func Prepare(ctx context.Context, dir string, size int64) (*os.File, error) {
	f, err := nameless(dir, os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("prepare a file to read: %w", err)
	}
	if err := prepare(ctx, f, size); err != nil {
		_ = f.Close() // it is gone with that
		return nil, fmt.Errorf("prepare a file to read in %s: %w", dir, err)
	}
	return f, nil
}

func prepare(ctx context.Context, f *os.File, size int64) error {
	block := make([]byte, prepareBlock)
	fill(block)
	for at := int64(0); at < size; at += prepareBlock {
		stamp(block, uint64(at))
		if _, err := f.WriteAt(block[:min(prepareBlock, size-at)], at); err != nil {
			return err
		}
		if (at+prepareBlock)%prepareStep == 0 {
			if err := pagecache.Evict(f, 0, 0); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	// What the file system keeps of it, its size among it, goes to the disk too.
	if err := f.Sync(); err != nil {
		return err
	}
	return pagecache.Evict(f, 0, 0)
}
