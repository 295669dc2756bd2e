package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBesidesASignal(t *testing.T) {
	signaled := &SignalError{Signal: unix.SIGTERM}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{signaled, ""},
		{errors.Join(errors.Join(signaled, context.Canceled), nil), ""},
		{errors.Join(errors.Join(signaled, fmt.Errorf("remove cgroup: %w", fs.ErrPermission)), nil), "remove cgroup: permission denied"},
	} {
		got := ""
		if err := BesidesSignal(c.err); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("besides the signal %v has %q, want %q", c.err, got, c.want)
		}
	}
}
