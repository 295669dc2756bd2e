package machine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/weir-io/weir/lab/internal/mkfs"
)

// A Disk is a file that the guest has as a disk.
type Disk struct {
	Name     string // no longer than a virtio disk's serial number, 20 characters
	Path     string
	Word     string // of the kernel's command line, that names the guest's device: "root"
	ReadOnly bool   // guests share it
	Scratch  bool   // guests share it too: what one writes goes to a file of its own, that ends with it
}

// A Set is a number of disks with a file system on them, or "raw" ones.
type Set struct {
	FS     string
	Number int
}

const (
	jobDisk = "job" // the payload
	outDisk = "out" // the results

	testDiskBytes = 4 << 30 // sparse
	outDiskBytes  = 64 << 20
)

// makeDisks makes the disks that the guest's agent is told of, in this order.
func makeDisks(ctx context.Context, dir, payload string, sets []Set) ([]Disk, error) {
	out := Disk{Name: outDisk, Path: filepath.Join(dir, outDisk)}
	if err := makeSparse(out.Path, outDiskBytes); err != nil {
		return nil, fmt.Errorf("make disks: %w", err)
	}
	disks := []Disk{{Name: jobDisk, Path: payload, ReadOnly: true}, out}
	for _, set := range sets {
		for i := range set.Number {
			name := set.FS + "-" + strconv.Itoa(i)
			d := Disk{Name: name, Path: filepath.Join(dir, name)}
			if err := makeSparse(d.Path, testDiskBytes); err != nil {
				return nil, fmt.Errorf("make disks: %w", err)
			}
			if set.FS != "raw" {
				if err := mkfs.Format(ctx, set.FS, d.Path, true); err != nil {
					return nil, fmt.Errorf("make disks: %w", err)
				}
			}
			disks = append(disks, d)
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
