package main

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/lab"
)

// A SIGHUP that comes while weird starts, before it has any plans, does not end it.
func TestHangupDuringTheStart(t *testing.T) {
	lab.Unit(t)
	enough := errors.New("enough")
	r := runner{root: t.TempDir(), open: func(string) (*host.Host, error) {
		return nil, errors.Join(unix.Kill(unix.Getpid(), unix.SIGHUP), enough) // it is delivered before kill(2) returns
	}}
	if err := r.run(t.Context()); !errors.Is(err, enough) {
		t.Error(err)
	}
}
