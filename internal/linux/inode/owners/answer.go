package owners

import (
	"context"

	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
)

// Answer makes what answers the questions of an inode.Asker, on this host.
func Answer(ctx context.Context, groups *cgroupfs.FS) func(name string, with []byte) (any, error) {
	var r *Reader // open
	return func(name string, with []byte) (answer any, err error) {
		switch name {
		case inode.OpenReader:
			r, err = Open(groups)
			return nil, err
		case inode.OfPaths:
			var paths []string
			if err := helper.Unpack(with, &paths); err != nil {
				return nil, err
			}
			return found(r.OfPaths(ctx, paths))
		case inode.OfProcesses:
			var pids []int
			if err := helper.Unpack(with, &pids); err != nil {
				return nil, err
			}
			return found(r.OfProcesses(ctx, pids))
		}
		return nil, helper.Unknown(name)
	}
}

func found(files []inode.File, err error) ([]inode.Found, error) {
	var all []inode.Found
	for _, f := range files {
		all = append(all, inode.Found{File: f, Flags: f.OpenFlags})
	}
	return all, err
}
