package main

import (
	"errors"
	"testing"

	"github.com/weir-io/weir/lab/internal/outcome"
)

// TestNothingMayRunNowhere: in a whole run each test must have run on some guest, and
// an emulated full one is enough. In a narrow run it need not.
func TestNothingMayRunNowhere(t *testing.T) {
	known := []outcome.Known{{Package: "p", Name: "TestBPFSeesUnits"}}
	on := func(name string, v outcome.Verdict) outcome.Guest {
		return outcome.Guest{Name: name, Tests: []outcome.Test{{Package: "p", Name: "TestBPFSeesUnits", Verdict: v, Reason: "bpf"}}}
	}
	skipped := []outcome.Guest{on("uml-6.1-v2", outcome.Skipped), on("full-7.2-trixie-v2", outcome.Skipped)}
	ran := append(skipped, on("full-qemu-7.3-trixie-v2", outcome.Passed))
	for _, c := range []struct {
		name   string
		guests []outcome.Guest
		whole  bool
		want   error
	}{
		{"skipped everywhere", skipped, true, errFailed},
		{"no guest at all", nil, true, errFailed},
		{"ran once", ran, true, nil},
		{"narrow", skipped, false, nil},
	} {
		if err := judge(c.guests, known, c.whole); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
