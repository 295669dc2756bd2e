package cli

import (
	"fmt"

	"github.com/weir-io/weir/internal/fault"
)

// A UsageError says that the command line is wrong.
type UsageError = fault.Misuse

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return fault.Misusef(format, args...) }

// A StatusError ends weir with a status and without a message, because everything has been
// said.
type StatusError struct{ Status int }

func (e *StatusError) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

// ExitStatus is Status, as fault.Statused has it.
func (e *StatusError) ExitStatus() int { return e.Status }

// The exit codes of every verb, as package fault has them.
const (
	ExitDone        = fault.ExitDone
	ExitNotDone     = fault.ExitNotDone
	ExitUnsupported = fault.ExitNotPossible
)

// ExitCode returns the exit code that an error stands for.
func ExitCode(err error) int { return fault.ExitCode(err) }
