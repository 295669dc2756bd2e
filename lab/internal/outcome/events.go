package outcome

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Verdict is how one test ended on one guest.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
	Skipped Verdict = "skipped"
	Broken  Verdict = "broken" // it began and did not end
	Again   Verdict = "again"  // it failed, and passed when it was measured again, alone
)

// Test is one test, or subtest, on one guest.
type Test struct {
	Package string
	Name    string
	Verdict Verdict
	Seconds float64
	Output  string // its own lines
	Reason  string // of a skip: what package lab said was missing
}

// Whole is the reason of a test that only the whole matrix has a place for.
const Whole = "whole"

// Kubelet is the reason of a test that only "make kubelet" runs.
const Kubelet = "kubelet"

// Cluster is the reason of a test that only "make cluster" runs.
const Cluster = "cluster"

// NewContainerd is the reason of a test that only "make containerd" runs.
const NewContainerd = "containerd-2.2"

// Resets is the reason of a test whose guest is reset, which only a run of that test alone does.
const Resets = "resets"

// Unit is the reason of a test that has no place in the lab: a plain go test runs it.
const Unit = "unit"

// SkipMark begins the line with which package lab skips a test.
const SkipMark = "lab-need: "

type event struct {
	Action  string
	Test    string
	Output  string
	Elapsed float64
}

// Read reads the events of one test binary, as test2json writes them. output has
// the lines that belong to no test, such as a panic's.
func Read(pkg string, data []byte) (tests []Test, output string, err error) {
	index := make(map[string]int)
	var rest strings.Builder
	s := bufio.NewScanner(bytes.NewReader(data))
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var e event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			return nil, "", fmt.Errorf("read events of %s: %w", pkg, err)
		}
		if e.Test == "" {
			if e.Action == "output" {
				rest.WriteString(e.Output)
			}
			continue
		}
		i, seen := index[e.Test]
		if !seen {
			i = len(tests)
			index[e.Test] = i
			tests = append(tests, Test{Package: pkg, Name: e.Test, Verdict: Broken})
		}
		tests[i].apply(e)
	}
	return tests, rest.String(), s.Err()
}

func (t *Test) apply(e event) {
	switch e.Action {
	case "output":
		t.Output += e.Output
		if _, reason, ok := strings.Cut(e.Output, SkipMark); ok {
			t.Reason = strings.TrimSpace(reason)
		}
	case "pass":
		t.Verdict, t.Seconds = Passed, e.Elapsed
	case "fail":
		t.Verdict, t.Seconds = Failed, e.Elapsed
	case "skip":
		t.Verdict, t.Seconds = Skipped, e.Elapsed
	}
}
