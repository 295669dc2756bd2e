package tracer

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRefused(t *testing.T) {
	for err, want := range map[error]string{
		unix.EPERM:  "trace: the kernel does not let this process load BPF programs; ",
		unix.ENOSYS: "trace: function not implemented; boot Linux 5.10 or later",
	} {
		if got := refused(err).Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

func TestReasonIsALine(t *testing.T) {
	for text, want := range map[string]string{
		"one\ntwo": "one",
		"load: operation not permitted (MEMLOCK may be too low, consider rlimit.RemoveMemlock)": "load: operation not permitted",
	} {
		if got := reason(errors.New(text)); got != want {
			t.Errorf("the reason of %q is %q", text, got)
		}
	}
}
