package cli

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
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
		{&fault.Unsupported{}, 3},
		{&blkdev.NoBlockDeviceError{}, 3},
		{&bpf.Unavailable{}, 3},
		{&targets.NameError{Err: errors.New("x")}, 2},
		{&targets.NoKindError{Err: &fault.Unsupported{}}, 3},
		{&targets.NotFound{}, 1},
		{&volume.SpecError{}, 2},
		{&volume.NameError{}, 1},
		{&quota.SpecError{}, 2},
		{&quota.NotSetError{}, 1},
		{&place.SpecError{}, 2},
		{&place.NothingToPaceError{}, 2},
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
