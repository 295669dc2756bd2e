package targets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/daemon/socket"
	"github.com/weir-io/weir/internal/fault"
)

// A Daemon is a program that weir asks for targets.
type Daemon struct {
	Title  string // for people
	Socket string
	Remedy string // where it does not answer there
	Check  string // a command that shows whether it still runs
}

// Explain says for the user why the daemon could not be asked for a target, and what to do.
func (d Daemon) Explain(spec string, err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(fs.ErrNotExist):
		return &NoKindError{Err: &fault.Unsupported{Feature: spec, Reason: "there is no " + d.Title + " at " + d.Socket, Remedy: d.Remedy}}
	case is(unix.ECONNREFUSED):
		return &NoKindError{Err: &fault.Unsupported{Feature: spec, Reason: d.Title + " is not running: nothing answers at " + d.Socket, Remedy: d.Remedy}}
	case is(fs.ErrPermission):
		return fmt.Errorf("%s: ask %s at %s: permission denied (run weir as root)", spec, d.Title, d.Socket)
	case is(os.ErrDeadlineExceeded), is(context.DeadlineExceeded):
		return fmt.Errorf("%s: ask %s at %s: no answer in %s; check whether it is running: %s", spec, d.Title, d.Socket, socket.AnswerMax, d.Check)
	}
	return fmt.Errorf("%s: ask %s at %s: %w", spec, d.Title, d.Socket, err)
}
