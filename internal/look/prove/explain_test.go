package prove

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/why"
)

// A row names the findings that are about its path and can be behind its verdict.
func TestExplain(t *testing.T) {
	report := &why.Report{
		Matrix: []why.Cell{
			{Place: 0, Path: load.Buffered, Held: why.No, Findings: []int{1, 5}},
			{Place: 0, Path: load.Direct, Held: why.Yes},
			{Place: 0, Path: load.Direct, Read: true, Held: why.Yes},
			{Place: 1, Path: load.Buffered, Held: why.No, Findings: []int{2}},
			{Place: 1, Path: load.Sync, Held: why.Unknown, Findings: []int{4}},
			{Place: 1, Path: load.Direct, Held: why.Yes},
			{Place: 2, Path: load.Buffered, Held: why.AtDevice, Findings: []int{6, 7}},
		},
		Findings: []why.Finding{
			{Number: 1, Code: "v1-writeback", Severity: why.Breaks}, {Number: 2, Code: "foreign-inode", Severity: why.Breaks},
			{Number: 3, Code: "io-cost", Severity: why.Note}, {Number: 4, Code: "inode-not-known", Severity: why.Note},
			{Number: 5, Code: "slow-drain", Severity: why.Hurts}, {Number: 6, Code: "writer-runs-ahead", Severity: why.Note},
			{Number: 7, Code: "escapes-paced", Severity: why.Note},
		},
	}
	for name, c := range map[string]struct {
		place    int
		path     load.Path
		verdict  Verdict
		reason   Reason
		observed bool
		want     []int
		warning  string
	}{
		"not held, and known":      {0, load.Buffered, NotHeld, Escaped, false, []int{1}, ""},
		"not held, and not known":  {0, load.Direct, NotHeld, TooMuch, false, nil, "no reason"},
		"not held, 32 at once":     {1, load.Async, NotHeld, TooMuch, false, nil, "no reason"},
		"not held, perhaps known":  {1, load.Sync, NotHeld, Escaped, false, []int{4}, ""},
		"a slow disk, uncharged":   {0, load.Buffered, CannotTell, Uncharged, false, []int{1}, ""},
		"held":                     {0, load.Direct, Held, "", false, nil, ""},
		"held, and should not be":  {1, load.Buffered, Held, "", false, []int{2}, "a new file of its own"},
		"held at the device":       {2, load.Buffered, HeldAtDevice, "", false, []int{6}, ""},
		"slow":                     {0, load.Direct, CannotTell, Slow, false, []int{3}, ""},
		"the target is slow":       {0, "", CannotTell, Slow, true, nil, ""},
		"the load hung":            {0, load.Buffered, CannotTell, Hung, false, []int{5}, ""},
		"the load hung elsewhere":  {2, load.Buffered, CannotTell, Hung, false, nil, ""},
		"busy":                     {0, load.Direct, CannotTell, Busy, false, nil, ""},
		"the target is not held":   {1, "", NotHeld, Escaped, true, []int{2}, ""},
		"the target is held today": {1, "", Held, "", true, nil, ""},
		"held by weir's pacer":     {2, "", Held, "", true, []int{7}, ""},
	} {
		row := Row{Test: Test{Path: c.path, Key: limit.WBPS}, Judgement: Judgement{Verdict: c.verdict, Reason: c.reason}}
		got, warning := Explanation{report, c.place}.explain(row, c.observed)
		if !slices.Equal(got, c.want) || (warning == "") != (c.warning == "") || !strings.Contains(warning, c.warning) {
			t.Errorf("%s: %v %q, want %v %q", name, got, warning, c.want, c.warning)
		}
	}
	if got, warning := (Explanation{}).explain(Row{}, false); got != nil || warning != "" {
		t.Errorf("nobody asked: %v %q", got, warning)
	}
}
