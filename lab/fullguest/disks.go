package fullguest

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/weir-io/weir/lab/mkfs"
)

type disk struct {
	name     string
	path     string
	readOnly bool
}

const (
	testDiskBytes = 4 << 30 // sparse
	outDiskBytes  = 64 << 20
)

// testDisks are fewer than a small guest's: user-mode Linux takes sixteen disks,
// and three are the system's own.
var testDisks = []struct {
	fs     string
	number int
}{{"ext4", 3}, {"xfs", 2}, {"btrfs", 1}, {"raw", 2}}

// makeDisks makes the disks that the agent is told of.
func makeDisks(ctx context.Context, dir, payload string) ([]disk, error) {
	out := disk{name: "out", path: filepath.Join(dir, "out")}
	if err := sparse(out.path, outDiskBytes); err != nil {
		return nil, fmt.Errorf("make disks: %w", err)
	}
	disks := []disk{{name: "job", path: payload, readOnly: true}, out}
	for _, set := range testDisks {
		for i := range set.number {
			name := set.fs + "-" + strconv.Itoa(i)
			d := disk{name: name, path: filepath.Join(dir, name)}
			if err := sparse(d.path, testDiskBytes); err != nil {
				return nil, fmt.Errorf("make disks: %w", err)
			}
			if set.fs != "raw" {
				if err := mkfs.Format(ctx, set.fs, d.path, true); err != nil {
					return nil, fmt.Errorf("make disks: %w", err)
				}
			}
			disks = append(disks, d)
		}
	}
	return disks, nil
}

func names(disks []disk) []string {
	all := make([]string, len(disks))
	for i, d := range disks {
		all[i] = d.name
	}
	return all
}
