package why_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// A report is what these tests look at of weir why's JSON.
type report struct {
	Matrix []struct {
		Place int
		Path  string
		Read  bool
		Held  string `json:"expected"`
		// Mechanism is what is to hold it; empty where nothing does.
		Mechanism string
		Findings  []int
	}
	Findings []finding
	status   int
}

type finding struct {
	Number               int
	Code, Severity, Text string
	Evidence             []struct{ File, Value string }
	Fixes                []struct {
		Text  string
		Lines []string
	}
}

// explain runs weir why.
func explain(t *testing.T, args ...string) report {
	t.Helper()
	cmd := exec.Command("weir", append([]string{"why", "--json"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var r report
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("weir why %s: %v, status %d\n%s%s", strings.Join(args, " "), err, r.status, out, stderr.Bytes())
	}
	return r
}

func (r report) find(code string) *finding {
	for i := range r.Findings {
		if r.Findings[i].Code == code {
			return &r.Findings[i]
		}
	}
	return nil
}

func (r report) codes() []string {
	var codes []string
	for _, f := range r.Findings {
		codes = append(codes, f.Code)
	}
	return codes
}

// held is the answer for one path at the first place.
func (r report) held(path string, read bool) string {
	for _, c := range r.Matrix {
		if c.Place == 0 && c.Path == path && c.Read == read {
			return c.Held
		}
	}
	return ""
}

// want fails unless the report has a finding of that severity, and ends as that asks.
func (r report) want(t *testing.T, code, severity string) finding {
	t.Helper()
	f := r.find(code)
	if f == nil || f.Severity != severity {
		t.Fatalf("findings %v (%+v), want %s, which %s", r.codes(), f, code, severity)
	}
	if severity == "breaks" && r.status != 1 {
		t.Errorf("weir why ends with %d, want 1", r.status)
	}
	return *f
}

// gone fails if the report still has the finding.
func (r report) gone(t *testing.T, code string) {
	t.Helper()
	if f := r.find(code); f != nil {
		t.Errorf("%s is still found: %+v", code, *f)
	}
}

// paste does what a fix says, as a person would: by a shell. It returns what was printed.
func (f finding) paste(t *testing.T, contains string) string {
	t.Helper()
	for _, fix := range f.Fixes {
		text := strings.Join(fix.Lines, "\n")
		if !strings.Contains(text, contains) {
			continue
		}
		out, err := exec.Command("sh", "-ec", text).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", text, err, out)
		}
		return string(out)
	}
	t.Fatalf("%s: no fix has %q: %+v", f.Code, contains, f.Fixes)
	return ""
}

// proves has weir prove come to one of some verdicts about a path's writes in the group.
// An emulated processor is too slow for that.
func (g group) proves(t *testing.T, dir, path string, verdicts ...string) {
	t.Helper()
	if lab.Here(t).Lane == "qemu" {
		return
	}
	var doc struct {
		Rows []struct{ Name, Verdict, Reason, Why string }
	}
	lab.Prove(t, &doc, "cgroup:"+g.path, "--on", dir, "--paths", path, "--for", "2s")
	for _, r := range doc.Rows {
		if r.Name == path+" write" && !slices.Contains(verdicts, r.Verdict) {
			t.Errorf("weir prove says of a %s: %s (%s: %s), want %s", r.Name, r.Verdict, r.Reason, r.Why, strings.Join(verdicts, " or "))
		}
	}
	if len(doc.Rows) == 0 {
		t.Errorf("weir prove says nothing of %s writes", path)
	}
}
