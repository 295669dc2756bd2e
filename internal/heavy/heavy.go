// Package heavy has the roles of package self that take what is too heavy to be linked into weir:
// the library that loads BPF programs, and the one that reads YAML. weird has them, and so do
// programs that link weir as a library.
package heavy

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/act/escape/watcher"
	"github.com/weir-io/weir/internal/act/mend"
	"github.com/weir-io/weir/internal/act/mend/mending"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/linux/inode/owners"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/look/trace/tracer"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/internal/self"
)

// Roles are the heavy roles of a program of some version.
func Roles(version string) self.Heavy {
	return self.Heavy{Run: func(ctx context.Context, name string, args []string, s self.Streams) error {
		return run(ctx, version, name, args, s)
	}}
}

func run(ctx context.Context, version, name string, args []string, s self.Streams) error {
	serve := func(to func(string, []byte) (any, error)) error { return helper.Serve(version, s.In, s.Out, to) }
	switch name {
	case pacer.PacerArg:
		return self.Pace(ctx, programs)
	case mend.Arg:
		return mending.Serve(ctx, args, s.Out)
	case plans.HelperArg:
		return serve(planfile.Answer)
	case kernel.HelperArg:
		return serve(unpack)
	case trace.HelperArg:
		return serve(tracer.Answer())
	}
	groups, err := cgroupfs.Open("/")
	if err != nil {
		return err
	}
	defer groups.Close()
	switch name {
	case pacer.EscapesArg, pacer.PartialArg:
		return programs.Load(name, groups, int(s.In.Fd()))
	case inode.HelperArg:
		return serve(owners.Answer(ctx, groups))
	case escape.HelperArg:
		return serve(watcher.Answer(groups))
	}
	return fmt.Errorf("weir has no role %s", name)
}

// unpack answers kernel.ByHelper.
func unpack(name string, with []byte) (any, error) {
	if name != kernel.UnpackThis {
		return nil, helper.Unknown(name)
	}
	var packed []byte
	if err := helper.Unpack(with, &packed); err != nil {
		return nil, err
	}
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(text, kernel.ConfigMax))
}
