package cgroupfs

import (
	"errors"
	"os"
	"testing"

	"github.com/weir-io/weir/internal/limit"
)

// ruled is a group with a rule of 1000 bytes a second on 8:0.
func ruled(t *testing.T) Group {
	files := make(map[string]string)
	for _, name := range filesV1 {
		files["a/"+name] = ""
	}
	files["a/"+filesV1[limit.WBPS]] = "8:0 1000\n"
	return groupOf(t, v1(t, files), "/a")
}

// A loan raises the rule for a moment, and every reader sees the rule that it is on. (That
// the kernel takes it is tested in the lab: a copy of its files is not written to.)
func TestALoanOnARule(t *testing.T) {
	g := ruled(t)
	var back Write
	if err := g.Lend(number("8:0"), func(w Write) error { back = w; return nil }); err == nil {
		t.Error("a copy was written to")
	}
	if want := (Write{File: g.File(filesV1[limit.WBPS]), Line: "8:0 1000"}); back != want {
		t.Errorf("it is ended by %+v, want %+v", back, want)
	}
	parsed, err := parseRulesV1(nil, limit.WBPS, "8:0 70368744178664\n")
	if err != nil || len(parsed) != 1 || parsed[0].Limit.WBPS != limit.PerSecond(1000) {
		t.Errorf("the rule is read as %v, %v", parsed, err)
	}
	for n, want := range map[uint64]uint64{1000: 1000, loanMark - 1: loanMark - 1, loanMark + 1000: 1000, 2 * loanMark: 2 * loanMark} {
		if got := lentOn(n); got != want {
			t.Errorf("lentOn(%d) = %d, want %d", n, got, want)
		}
	}
}

// A rule that somebody has set meanwhile stays; where there is none, or the lender cannot be
// told of, nothing is lent.
func TestNoLoan(t *testing.T) {
	g := ruled(t)
	untold := errors.New("no guard")
	if err := g.Lend(number("8:0"), func(Write) error { return untold }); err != untold {
		t.Error(err)
	}
	if err := g.Lend(number("8:16"), func(Write) error { return nil }); !errors.Is(err, ErrNoLoan) {
		t.Error(err)
	}
	for _, dev := range []string{"8:0", "8:16"} {
		if err := g.Repay(number(dev)); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(g.File(filesV1[limit.WBPS])); err != nil || string(text) != "8:0 1000\n" {
		t.Errorf("%q, %v", text, err)
	}
}
