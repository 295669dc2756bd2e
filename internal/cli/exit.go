package cli

import (
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/bpf"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/quota"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/volume"
)

// The exit codes of every verb. weir run ends as its command does, once it runs.
const (
	ExitDone        = 0 // done, or held
	ExitNotDone     = 1 // not done, or not held
	ExitUsage       = 2 // wrong use
	ExitUnsupported = 3 // not possible on this host
)

// A UsageError says that the command line is wrong.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// A StatusError ends weir with a status and without a message, because everything has been
// said.
type StatusError struct{ Status int }

func (e *StatusError) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

// ExitCode returns the exit code that an error stands for.
func ExitCode(err error) int {
	var status *StatusError
	var start *launch.StartError
	var signaled *launch.SignalError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &status):
		return status.Status
	case errors.As(err, &start):
		return start.Status
	case errors.As(err, &signaled):
		return 128 + int(signaled.Signal) // as a shell gives it
	case isA[*UsageError](err), isA[*limit.SyntaxError](err), isA[*blkdev.SpellingError](err), isA[*target.NameError](err), isA[*volume.SpecError](err), isA[*quota.SpecError](err), isA[*place.SpecError](err):
		return ExitUsage
	case isA[*cgroupfs.Unsupported](err), isA[*blkdev.NoBlockDeviceError](err), isA[*bpf.Unavailable](err):
		return ExitUnsupported
	default:
		return ExitNotDone
	}
}

func isA[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
