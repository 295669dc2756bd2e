package outcome

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteTable prints a row a guest: its tests, what its time went to, and which suite took
// the most of it.
func WriteTable(w io.Writer, guests []Guest) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "GUEST\tPASSED\tAGAIN\tFAILED\tSKIPPED\tINSTALL\tWAIT\tBOOT\tTESTS\tTOTAL\tBUSY\tLONGEST SUITE")
	for _, g := range guests {
		note := "-"
		if longest := g.Longest(); longest.Seconds > 0 {
			note = fmt.Sprintf("%s %.1f", path.Base(longest.Package), longest.Seconds)
		}
		if g.Err != nil {
			note = "guest failed"
		}
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%.1f\t%s\t%s\n", g.Name,
			g.Count(Passed), g.Count(Again), g.Count(Failed)+g.Count(Broken), g.Count(Skipped),
			seconds(g.Times.Install), seconds(g.Times.Wait), seconds(g.Times.Boot), seconds(g.Times.Tests), g.Times.Total(), seconds(g.Times.Busy), note)
	}
	return t.Flush()
}

// slowest is how many of a guest's tests WriteSlowest names.
const slowest = 6

// WriteSlowest prints a line a guest: its tests that took longest. A test that is here is
// what to look at when a run takes too long.
func WriteSlowest(w io.Writer, guests []Guest) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "GUEST\tSLOWEST TESTS")
	for _, g := range guests {
		whole := slices.DeleteFunc(slices.Clone(g.Tests), func(t Test) bool { return strings.Contains(t.Name, "/") || t.Seconds < 0.5 })
		slices.SortStableFunc(whole, func(a, b Test) int { return cmp.Compare(b.Seconds, a.Seconds) })
		var names []string
		for _, t := range whole[:min(len(whole), slowest)] {
			names = append(names, fmt.Sprintf("%s.%s %.1f", path.Base(t.Package), strings.TrimPrefix(t.Name, "Test"), t.Seconds))
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\n", g.Name, strings.Join(names, ", "))
	}
	return t.Flush()
}

func seconds(s float64) string {
	if s < 0.05 {
		return "-"
	}
	return fmt.Sprintf("%.1f", s)
}

// WriteFailures prints the output of each test that failed, also of those that passed when
// they were measured again, and why guests failed.
// A test whose subtests failed is left out: they say it.
func WriteFailures(w io.Writer, guests []Guest) error {
	var b strings.Builder
	for _, g := range guests {
		if g.Err != nil {
			_, _ = fmt.Fprintf(&b, "\n==== %s: %v\n", g.Name, g.Err)
		}
		if g.Bad() && g.Output != "" {
			_, _ = fmt.Fprintf(&b, "\n==== %s: output outside tests\n%s", g.Name, g.Output)
		}
		for i, t := range g.Tests {
			switch {
			case t.Verdict == Again:
				_, _ = fmt.Fprintf(&b, "\n==== %s: %s %s failed at first, and passed when measured again, alone\n%s", g.Name, t.Package, t.Name, t.Output)
			case t.bad() && !hasBadChild(g.Tests[i+1:], t):
				_, _ = fmt.Fprintf(&b, "\n==== %s: %s %s %s\n%s", g.Name, t.Package, t.Name, t.Verdict, t.Output)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func hasBadChild(tests []Test, parent Test) bool {
	for _, t := range tests {
		if t.bad() && t.Package == parent.Package && strings.HasPrefix(t.Name, parent.Name+"/") {
			return true
		}
	}
	return false
}

// WriteTests prints how long each test binary took, every test that ran with its guest, verdict and seconds, and
// below it what it logged: that is where the measured figures are.
func WriteTests(w io.Writer, guests []Guest) error {
	var b strings.Builder
	for _, g := range guests {
		for _, s := range g.Suites {
			_, _ = fmt.Fprintf(&b, "%s %s %.2fs\n", g.Name, s.Package, s.Seconds)
		}
		for _, t := range g.Tests {
			if t.Verdict == Skipped {
				continue
			}
			_, _ = fmt.Fprintf(&b, "%s %s %s %s %.2fs\n", g.Name, t.Package, t.Name, t.Verdict, t.Seconds)
			for line := range strings.Lines(t.Output) {
				if strings.HasPrefix(line, "    ") {
					b.WriteString(line)
				}
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
