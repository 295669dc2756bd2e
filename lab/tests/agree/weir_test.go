package agree_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A report is what is compared here of weir why's JSON.
type report struct {
	Matrix   []cell
	Findings []finding
}

type cell struct {
	Path      string
	Read      bool
	Held      string `json:"expected"`
	Mechanism string
	Findings  []int
}

type finding struct {
	Number int
	Code   string
}

func (c cell) direction() string {
	if c.Read {
		return "read"
	}
	return "write"
}

// codes names findings.
func (r report) codes(numbers []int) []string {
	var codes []string
	for _, n := range numbers {
		codes = append(codes, r.Findings[n-1].Code)
	}
	return codes
}

// A proof is the same of weir prove's.
type proof struct {
	Asked    string
	Rows     []row
	Findings []finding
}

type row struct {
	Name, Path, Direction string
	Writer, Cgroup, Disk  struct{ Rate float64 }
	Ratio                 float64
	Verdict, Reason, Why  string
	Warnings              []string
	Findings              []int
}

func (p proof) row(path string, read bool) (row, bool) {
	for _, r := range p.Rows {
		if r.Path == path && r.Direction == (cell{Read: read}).direction() {
			return r, true
		}
	}
	return row{}, false
}

// ask runs weir why.
func ask(t *testing.T, args ...string) (r report) {
	t.Helper()
	weir(t, &r, append([]string{"why"}, args...)...)
	return r
}

// prove runs weir prove.
func prove(t *testing.T, args ...string) (p proof) {
	t.Helper()
	began := time.Now()
	weir(t, &p, append([]string{"prove"}, args...)...)
	for _, r := range p.Rows {
		t.Logf("%s: %s (%s%s) %.2f; writer %.0f, group %.0f, disk %.0f; %v %v", r.Name, r.Verdict, r.Reason, r.Why, r.Ratio, r.Writer.Rate, r.Cgroup.Rate, r.Disk.Rate, r.Findings, r.Warnings)
	}
	t.Logf("%.1f s", time.Since(began).Seconds())
	return p
}

// weir runs a verb, whose exit code is its verdict, and reads its document.
func weir(t *testing.T, document any, args ...string) {
	t.Helper()
	cmd := exec.Command("weir", append(args, "--json")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, document); err != nil {
		t.Fatalf("weir %s: exit %d, %v\n%s%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), err, out, stderr.Bytes())
	}
}
