package cli

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/bpf"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{&cgroupfs.WriteError{}, 1},
		{&cgroupfs.RightsError{}, 1},
		{&blkdev.NotFoundError{}, 1},
		{Usagef("x"), 2},
		{&limit.SyntaxError{}, 2},
		{&blkdev.SpellingError{}, 2},
		{&cgroupfs.Unsupported{}, 3},
		{&blkdev.NoBlockDeviceError{}, 3},
		{&bpf.Unavailable{}, 3},
		{&launch.StartError{Status: 127}, 127},
		{&launch.SignalError{Signal: syscall.SIGTERM}, 143},
		{&StatusError{Status: 137}, 137},
		{errors.Join(errors.New("and"), &StatusError{Status: 7}), 7},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if c.err == nil {
				err = nil
			}
			if got := ExitCode(err); got != c.want {
				t.Errorf("ExitCode(%v) = %d, want %d", err, got, c.want)
			}
		}
	}
}
