package outcome

import (
	"cmp"
	"slices"
	"strings"
)

// Guest is one row's outcome.
type Guest struct {
	Name   string
	Tests  []Test
	Suites []Suite
	Times  Times
	Err    error  // it did not boot, hung, or lost its results
	Output string // what belongs to no test, of binaries that ended badly
}

// Times are what a guest's time went to, in seconds; 0 where it is not known.
type Times struct {
	Install float64 // what it boots was found, or built
	Wait    float64 // for a place on this machine
	Boot    float64 // until its first test
	Tests   float64 // from there to its end
	Busy    float64 // of a processor, while it booted and tested: in no sum
}

// Total is all that it waited for.
func (t Times) Total() float64 { return t.Install + t.Wait + t.Boot + t.Tests }

// Longest is the suite that took the most of a guest's time.
func (g Guest) Longest() Suite {
	if len(g.Suites) == 0 {
		return Suite{}
	}
	return slices.MaxFunc(g.Suites, func(a, b Suite) int { return cmp.Compare(a.Seconds, b.Seconds) })
}

// A Suite is one test binary that ran.
type Suite struct {
	Package string
	Seconds float64
}

// Count counts a guest's tests with one verdict, subtests included.
func (g Guest) Count(v Verdict) int {
	n := 0
	for _, t := range g.Tests {
		if t.Verdict == v {
			n++
		}
	}
	return n
}

// Bad reports whether anything is wrong with a guest.
func (g Guest) Bad() bool {
	return g.Err != nil || g.Count(Failed) > 0 || g.Count(Broken) > 0
}

// Known is a test that a binary lists, whether it ran or not.
type Known struct {
	Package, Name string
}

// Missed is a test that ran nowhere, with the reasons given for skipping it.
type Missed struct {
	Known
	Reasons []string // sorted, without repetition; empty: not even skipped
}

// NeverRan finds the tests that neither passed nor failed on any guest: of those
// that the binaries list, and of the subtests that were skipped. Those that are for the
// whole matrix, of which this was not one, are not missed, and neither are those that go
// test or "make kubelet" runs, nor those whose guest is reset.
func NeverRan(known []Known, guests []Guest) []Missed {
	ran := make(map[Known]bool)
	reasons := make(map[Known][]string)
	for _, k := range known {
		ran[k] = false
	}
	for _, g := range guests {
		for _, t := range g.Tests {
			k := Known{t.Package, t.Name}
			ran[k] = ran[k] || t.Verdict == Passed || t.Verdict == Failed || t.Verdict == Again
			if t.Verdict == Skipped {
				reasons[k] = append(reasons[k], cmp.Or(t.Reason, "no reason that package lab knows"))
			}
		}
	}
	var missed []Missed
	for k, did := range ran {
		if !did && !elsewhere(reasons[k]) {
			slices.Sort(reasons[k])
			missed = append(missed, Missed{k, slices.Compact(reasons[k])})
		}
	}
	slices.SortFunc(missed, func(a, b Missed) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Name, b.Name))
	})
	return missed
}

// elsewhere reports whether any guest left the test to the whole matrix, to go test, to "make kubelet",
// "make cluster" or "make containerd", or to a run of it alone: no guest of the whole matrix does the first, so that there such a test
// is missed if nothing else can run it.
func elsewhere(reasons []string) bool {
	return slices.ContainsFunc(reasons, func(r string) bool {
		reason, _, _ := strings.Cut(r, " ")
		return slices.Contains([]string{Whole, Unit, Kubelet, Cluster, NewContainerd, Resets}, reason)
	})
}
