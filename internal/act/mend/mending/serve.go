// Package mending is the helper of package mend, which is born in a group.
package mending

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/weir-io/weir/internal/act/mend"
	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode/owners"
)

// Serve moves files to the caller's group, and writes a Result for each as it is done.
func Serve(ctx context.Context, files []string, out io.Writer) error {
	// If the group's memory runs out, the kernel shall kill this process, and none of the
	// group's.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	groups, err := cgroupfs.Open("/")
	if err != nil {
		return err
	}
	defer groups.Close()
	reader, err := owners.Open(groups)
	if err != nil {
		return err
	}
	defer reader.Close()
	for _, file := range files {
		var r mend.Result
		if r.Mended, err = reader.Mend(ctx, file); err != nil {
			r.Refused = mend.Reason(err)
		}
		text, err := rawtext.Marshal(r)
		if err == nil {
			_, err = out.Write(append(text, '\n'))
		}
		if err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
	return nil
}
