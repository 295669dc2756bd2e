package inode

import (
	"context"

	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// HelperArg is the role of a helper that reads owners with package owners. Its questions are below:
// OpenReader with nothing, and the others with a list, which Found answers.
const (
	HelperArg   = "__owners"
	OpenReader  = "open"
	OfPaths     = "of paths"
	OfProcesses = "of processes"
)

// A Found is a File on its way from a helper.
type Found struct {
	File
	Flags int `json:"flags"` // OpenFlags
}

// An Asker has a helper read owners. To start one takes some 60 ms.
type Asker struct{ helper *helper.Helper }

// Ask starts a helper. If owners cannot be read, the error is a *bpf.Unavailable: it means "cannot
// tell", never "no owner".
func Ask(groups *cgroupfs.FS, helpers helper.Starter) (*Asker, error) {
	if err := Hindrance(groups); err != nil {
		return nil, err
	}
	h, err := helpers.Start(HelperArg)
	if err != nil {
		return nil, err
	}
	if err := h.Ask(context.Background(), OpenReader, nil, nil); err != nil {
		_ = h.Close()
		return nil, err
	}
	return &Asker{h}, nil
}

// Close ends the helper.
func (a *Asker) Close() error { return a.helper.Close() }

// OfPaths reports which groups own the writeback of files. It opens each file for reading, but
// does not read it, and opens only regular files. The answer has the paths' order. It refuses a
// path whose last element is a symbolic link, except /proc/PID/fd/N. (/proc/self is the helper's.)
func (a *Asker) OfPaths(ctx context.Context, paths []string) ([]File, error) {
	return a.ask(ctx, OfPaths, paths)
}

// OfProcesses reports which groups own the writeback of the regular files that processes have
// open, each file once for each process. Processes that are gone have none.
func (a *Asker) OfProcesses(ctx context.Context, pids []int) ([]File, error) {
	return a.ask(ctx, OfProcesses, pids)
}

func (a *Asker) ask(ctx context.Context, question string, with any) ([]File, error) {
	var found []Found
	if err := a.helper.Ask(ctx, question, with, &found); err != nil {
		return nil, err
	}
	var files []File
	for _, f := range found {
		f.OpenFlags = f.Flags
		files = append(files, f.File)
	}
	return files, nil
}
