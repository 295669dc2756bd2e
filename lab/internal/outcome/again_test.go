package outcome

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const marked = "    a_test.go:1: " + MeasuredMark + "what else the machine does counts\n"

func TestToMeasureAgain(t *testing.T) {
	red := func(name, output string) Test {
		return Test{Package: "p", Name: name, Verdict: Failed, Output: output}
	}
	for _, c := range []struct {
		what  string
		guest Guest
		want  []string
	}{
		{"all green", Guest{Tests: []Test{{Package: "p", Name: "TestA", Verdict: Passed, Output: marked}}}, nil},
		{"one that measures", Guest{Tests: []Test{red("TestA", marked)}}, []string{"TestA"}},
		{"one that does not", Guest{Tests: []Test{red("TestA", "")}}, nil},
		{"one of each", Guest{Tests: []Test{red("TestA", marked), red("TestB", "")}}, nil},
		{"a part that says it", Guest{Tests: []Test{red("TestA", ""), red("TestA/x", marked)}}, []string{"TestA"}},
		{"the whole says it", Guest{Tests: []Test{red("TestA", marked), red("TestA/x", "")}}, []string{"TestA"}},
		{"a part that does not", Guest{Tests: []Test{red("TestA", ""), red("TestA/x", marked), red("TestA/y", "")}}, nil},
		{"one that did not end", Guest{Tests: []Test{{Package: "p", Name: "TestA", Verdict: Broken, Output: marked}}}, nil},
		{"the guest broke", Guest{Err: errors.New("hung"), Tests: []Test{red("TestA", marked)}}, nil},
		{"too many", Guest{Tests: []Test{red("TestA", marked), red("TestB", marked), red("TestC", marked), red("TestD", marked)}}, nil},
	} {
		if got := c.guest.ToMeasureAgain(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestMeasuredAgain(t *testing.T) {
	for _, c := range []struct {
		second Guest
		want   Verdict
	}{
		{Guest{Tests: []Test{{Package: "p", Name: "TestA", Verdict: Passed}}}, Again},
		{Guest{Tests: []Test{{Package: "p", Name: "TestA", Verdict: Failed, Output: "    red too\n"}}}, Failed},
		{Guest{Tests: []Test{{Package: "p", Name: "TestA", Verdict: Skipped}}}, Failed},
		{Guest{Tests: []Test{{Package: "q", Name: "TestA", Verdict: Passed}}}, Failed},
		{Guest{Err: errors.New("hung"), Tests: []Test{{Package: "p", Name: "TestA", Verdict: Passed}}}, Failed},
		{Guest{}, Failed},
	} {
		g := Guest{Tests: []Test{{Package: "p", Name: "TestA", Verdict: Failed, Output: marked}}}
		g.MeasuredAgain(c.second)
		if got := g.Tests[0]; got.Verdict != c.want || !strings.HasPrefix(got.Output, marked) || g.Bad() != (c.want == Failed) {
			t.Errorf("after %+v: %+v, bad %t", c.second, got, g.Bad())
		}
	}
}
