package pacer_test

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab/uring"
)

const (
	uringDepth = 8
	uringBlock = 16 << 10
)

// writeUring writes a file through the page cache, uringDepth blocks under way at a time.
func writeUring(f *os.File, bytes int) (err error) {
	ring, err := uring.New(uringDepth, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ring.Close()) }()
	block, err := unix.Mmap(-1, 0, uringBlock, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for at := 0; at < bytes; {
		var requests []uring.Request
		for ; len(requests) < uringDepth && at < bytes; at += uringBlock {
			requests = append(requests, uring.Request{Opcode: uring.Write, FD: int(f.Fd()), Block: block, Offset: int64(at)})
		}
		if _, err := ring.Do(requests...); err != nil {
			return err
		}
	}
	return nil
}
