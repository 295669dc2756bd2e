package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/weir-io/weir/internal/fault"
)

// ended is an error with a status of its own.
type ended int

func (e ended) Error() string   { return fmt.Sprint("ended with ", int(e)) }
func (e ended) ExitStatus() int { return int(e) }

// missing is an error of one of the classes that have no type here.
type missing struct{ class fault.Class }

func (missing) Error() string        { return "missing" }
func (e missing) Class() fault.Class { return e.class }

func TestClasses(t *testing.T) {
	plain, misuse, unsupported := errors.New("x"), fault.Misusef("write %s", "10MB/s"), error(&fault.Unsupported{Feature: "x", Reason: "y"})
	notFound, denied := missing{fault.NotFound}, missing{fault.Denied}
	for _, c := range []struct {
		err        error
		class      fault.Class
		exit, http int
	}{
		{plain, fault.NotDone, 1, 500},
		{fs.ErrNotExist, fault.NotDone, 1, 500},
		{fmt.Errorf("quota: %w", fs.ErrPermission), fault.Denied, 1, 403},
		{notFound, fault.NotFound, 1, 404},
		{denied, fault.Denied, 1, 403},
		{unsupported, fault.NotPossible, 3, 501},
		{misuse, fault.WrongUse, 2, 400},
		{fmt.Errorf("set: %w", unsupported), fault.NotPossible, 3, 501},
		{errors.Join(plain, fmt.Errorf("set: %w", errors.Join(unsupported, plain))), fault.NotPossible, 3, 501},
		{errors.Join(unsupported, misuse), fault.WrongUse, 2, 400},
		{errors.Join(misuse, unsupported), fault.WrongUse, 2, 400},
		{errors.Join(notFound, denied), fault.Denied, 1, 403},
		{ended(137), fault.NotDone, 137, 500},
		{fmt.Errorf("run: %w", errors.Join(misuse, ended(7))), fault.WrongUse, 7, 400}, // once a command has run, its status counts
		{errors.Join(ended(7), ended(9)), fault.NotDone, 7, 500},
	} {
		if got := fault.ClassOf(c.err); got != c.class {
			t.Errorf("the class of %q is %d, want %d", c.err, got, c.class)
		}
		if got := fault.ExitCode(c.err); got != c.exit {
			t.Errorf("the exit code of %q is %d, want %d", c.err, got, c.exit)
		}
		if got := fault.ClassOf(c.err).HTTPStatus(); got != c.http {
			t.Errorf("the HTTP status of %q is %d, want %d", c.err, got, c.http)
		}
	}
	if got := fault.ExitCode(nil); got != 0 {
		t.Errorf("the exit code of no error is %d", got)
	}
	if got := misuse.Error(); got != "write 10MB/s" {
		t.Errorf("a misuse says %q", got)
	}
	if got := (&fault.Unsupported{Feature: "quota", Reason: "it is FAT", Remedy: "use XFS"}).Error(); got != "quota: it is FAT; use XFS" {
		t.Errorf("an unsupported feature says %q", got)
	}
}
