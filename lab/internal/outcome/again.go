package outcome

import "strings"

// MeasuredMark begins the line by which a test says that its verdict hangs on a measured rate
// or time, and so on what else the machine does.
const MeasuredMark = "lab-measures: "

// againMost is how many tests of one guest are measured again at most: a product that is
// broken is red in more.
const againMost = 3

// ToMeasureAgain lists the tests of a guest, none of them a subtest, that are red and hang on
// what was measured, if nothing else is wrong with the guest.
func (g Guest) ToMeasureAgain() []string {
	if g.Err != nil {
		return nil
	}
	var names []string
	for _, t := range g.Tests {
		if strings.Contains(t.Name, "/") || !t.bad() {
			continue
		}
		if t.Verdict == Broken || !g.measures(t) {
			return nil
		}
		names = append(names, t.Name)
	}
	if len(names) > againMost {
		return nil
	}
	return names
}

// measures reports whether each test of t's tree that is red for itself hangs on what was
// measured.
func (g Guest) measures(t Test) bool {
	marked := strings.Contains(t.Output, MeasuredMark)
	for i, sub := range g.Tests {
		if !g.within(sub, t) || !sub.bad() || hasBadChild(g.Tests[i+1:], sub) {
			continue
		}
		if !marked && !strings.Contains(sub.Output, MeasuredMark) {
			return false
		}
	}
	return true
}

// MeasuredAgain takes what became of a guest's red tests when they ran once more, alone on the
// machine: green ones count, and keep what they said at first; the others stay red.
func (g *Guest) MeasuredAgain(second Guest) {
	for i := range g.Tests {
		t := &g.Tests[i]
		if !t.bad() {
			continue
		}
		for _, again := range second.Tests {
			if again.Package != t.Package || again.Name != t.Name {
				continue
			}
			t.Output += "    -- measured again, alone: " + string(again.Verdict) + "\n" + again.Output
			if again.Verdict == Passed && second.Err == nil {
				t.Verdict = Again
			}
		}
	}
}

func (g Guest) within(t, tree Test) bool {
	return t.Package == tree.Package && (t.Name == tree.Name || strings.HasPrefix(t.Name, tree.Name+"/"))
}

func (t Test) bad() bool { return t.Verdict == Failed || t.Verdict == Broken }
