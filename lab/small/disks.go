package small

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/weir-io/weir/lab/mkfs"
)

type disk struct {
	name     string // no longer than a virtio disk's serial number, 20 characters
	path     string
	readOnly bool
}

const (
	testDiskBytes = 4 << 30 // sparse
	outDiskBytes  = 64 << 20
)

// makeDisks makes the disks of one guest: UML takes sixteen at most. Measured
// tests run side by side, so there are several of each file system.
func makeDisks(ctx context.Context, dir, payload string) ([]disk, error) {
	out := filepath.Join(dir, "out")
	if err := makeSparse(out, outDiskBytes); err != nil {
		return nil, fmt.Errorf("make disks: %w", err)
	}
	disks := []disk{{name: "job", path: payload, readOnly: true}, {name: "out", path: out}}
	for _, set := range []struct {
		fs     string
		number int
	}{{"ext4", 4}, {"xfs", 4}, {"btrfs", 2}, {"raw", 3}} {
		for i := range set.number {
			name := set.fs + "-" + strconv.Itoa(i)
			path := filepath.Join(dir, name)
			if err := makeSparse(path, testDiskBytes); err != nil {
				return nil, fmt.Errorf("make disks: %w", err)
			}
			if set.fs != "raw" {
				if err := mkfs.Format(ctx, set.fs, path, true); err != nil {
					return nil, fmt.Errorf("make disks: %w", err)
				}
			}
			disks = append(disks, disk{name: name, path: path})
		}
	}
	return disks, nil
}

func makeSparse(path string, bytes int64) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, bytes)
}
