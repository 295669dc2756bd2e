package outcome

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

const events = `{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/x"}
{"Action":"output","Test":"TestA/x","Output":"    a_test.go:3: rate 0.5\n"}
{"Action":"fail","Test":"TestA/x","Elapsed":1.5}
{"Action":"fail","Test":"TestA","Elapsed":1.6}
{"Action":"run","Test":"TestB"}
{"Action":"output","Test":"TestB","Output":"    b_test.go:9: lab-need: v2 (io is on v1)\n"}
{"Action":"skip","Test":"TestB"}
{"Action":"run","Test":"TestC"}
{"Action":"output","Output":"panic: test timed out\n"}
`

func TestRead(t *testing.T) {
	tests, output, err := Read("p", []byte(events))
	if err != nil {
		t.Fatal(err)
	}
	want := []Test{
		{Package: "p", Name: "TestA", Verdict: Failed, Seconds: 1.6},
		{Package: "p", Name: "TestA/x", Verdict: Failed, Seconds: 1.5, Output: "    a_test.go:3: rate 0.5\n"},
		{Package: "p", Name: "TestB", Verdict: Skipped, Reason: "v2 (io is on v1)", Output: "    b_test.go:9: lab-need: v2 (io is on v1)\n"},
		{Package: "p", Name: "TestC", Verdict: Broken},
	}
	if !reflect.DeepEqual(tests, want) {
		t.Errorf("got %+v\nwant %+v", tests, want)
	}
	if output != "panic: test timed out\n" {
		t.Errorf("output %q", output)
	}
	if _, _, err := Read("p", []byte("not json")); err == nil {
		t.Error("broken events were accepted")
	}
}

func TestNeverRan(t *testing.T) {
	known := []Known{{"p", "TestA"}, {"p", "TestB"}, {"p", "TestGone"}, {"p", "TestLong"}, {"p", "TestPure"}, {"p", "TestKubelet"}, {"p", "TestReset"}}
	guests := []Guest{
		{Name: "one", Tests: []Test{
			{Package: "p", Name: "TestA", Verdict: Skipped, Reason: "v2"},
			{Package: "p", Name: "TestB", Verdict: Skipped, Reason: "v1"},
			{Package: "p", Name: "TestC", Verdict: Passed},
			{Package: "p", Name: "TestC/sub", Verdict: Skipped},
			{Package: "p", Name: "TestLong", Verdict: Skipped, Reason: "not here (one: takes only others)"},
		}},
		{Name: "two", Tests: []Test{
			{Package: "p", Name: "TestA", Verdict: Failed},
			{Package: "p", Name: "TestB", Verdict: Skipped, Reason: "v1"},
			{Package: "q", Name: "TestGone", Verdict: Passed},
			{Package: "p", Name: "TestPure", Verdict: Skipped, Reason: "unit (two: go test runs it)"},
			{Package: "p", Name: "TestKubelet", Verdict: Skipped, Reason: "kubelet (two: not in PATH)"},
			{Package: "p", Name: "TestReset", Verdict: Skipped, Reason: "resets (two: other tests run here)"},
			{Package: "p", Name: "TestLong", Verdict: Skipped, Reason: "whole (two: a part of the matrix)"},
		}},
	}
	want := []Missed{
		{Known{"p", "TestB"}, []string{"v1"}},
		{Known{"p", "TestC/sub"}, []string{"no reason that package lab knows"}},
		{Known{"p", "TestGone"}, nil},
	}
	if got := NeverRan(known, guests); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestReport(t *testing.T) {
	tests, output, err := Read("p", []byte(events))
	if err != nil {
		t.Fatal(err)
	}
	guests := []Guest{
		{Name: "uml-6.1-v2", Tests: tests, Output: output, Times: Times{Wait: 2, Boot: 1.14, Tests: 2.11, Busy: 1.26}, Suites: []Suite{{"x/a", 0.5}, {"x/b", 1.5}}},
		{Name: "uml-6.1-v1", Err: errors.New("Kernel panic")},
		{Name: "good", Tests: []Test{{Verdict: Passed}, {Package: "p", Name: "TestD", Verdict: Again, Output: "0.94, then 1.00\n"}}, Output: "noise"},
	}
	if !guests[0].Bad() || !guests[1].Bad() || guests[2].Bad() {
		t.Error("bad guests are not told from good ones")
	}
	var table, failures bytes.Buffer
	if err := errors.Join(WriteTable(&table, guests), WriteFailures(&failures, guests)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "uml-6.1-v2  0       0      3       1        -        2.0   1.1   2.1    5.2    1.3   b 1.5") {
		t.Errorf("table:\n%s", table.String())
	}
	var longest bytes.Buffer
	if err := WriteSlowest(&longest, guests[:1]); err != nil {
		t.Fatal(err)
	}
	if want := "GUEST       SLOWEST TESTS\numl-6.1-v2  p.A 1.6\n"; longest.String() != want {
		t.Errorf("slowest tests: %q, want %q", longest.String(), want)
	}
	var all bytes.Buffer
	if err := WriteTests(&all, guests[:1]); err != nil {
		t.Fatal(err)
	}
	if want := "uml-6.1-v2 x/a 0.50s\numl-6.1-v2 x/b 1.50s\numl-6.1-v2 p TestA failed 1.60s\numl-6.1-v2 p TestA/x failed 1.50s\n    a_test.go:3: rate 0.5\numl-6.1-v2 p TestC broken 0.00s\n"; all.String() != want {
		t.Errorf("all tests: %q, want %q", all.String(), want)
	}
	text := failures.String()
	for _, want := range []string{"uml-6.1-v2: p TestA/x failed\n    a_test.go:3: rate 0.5", "TestC broken", "panic: test timed out", "uml-6.1-v1: Kernel panic", "good: p TestD failed at first, and passed when measured again, alone\n0.94, then 1.00"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	for _, not := range []string{"TestA failed", "noise"} {
		if strings.Contains(text, not) {
			t.Errorf("%q in:\n%s", not, text)
		}
	}
}
