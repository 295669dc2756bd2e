package cgconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
)

// configsLeast is how many files there are at least.
const configsLeast = 30

// A config is a file of the corpus with its answer; DEVA and DEVB stand for disks.
type config struct{ name, text, want string }

func corpus(t *testing.T, disks ...string) (all []config) {
	t.Helper()
	files, err := txtar.ParseFile("testdata/corpus.txtar")
	if err != nil {
		t.Fatal(err)
	}
	put := strings.NewReplacer("DEVA", disks[0], "DEVB", disks[1])
	for i := 0; i+1 < len(files.Files); i += 2 {
		in, want := files.Files[i], files.Files[i+1]
		if want.Name != in.Name+".want" {
			t.Fatalf("%s has no answer", in.Name)
		}
		all = append(all, config{in.Name, put.Replace(string(in.Data)), put.Replace(string(want.Data))})
	}
	return all
}

// spell lists the limits of groups, a line each.
func spell(limits []GroupLimit) string {
	slices.SortStableFunc(limits, func(a, b GroupLimit) int { return cmp.Compare(a.Group, b.Group) })
	var b strings.Builder
	for _, l := range limits {
		fmt.Fprintf(&b, "%s %s", l.Group, l.Device)
		for _, k := range limit.Keys {
			if r := l.Limit.Get(k); r.IsSet() {
				fmt.Fprintf(&b, " %s=%s", k, r.Kernel())
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// given are the limits that weir takes from a file.
func given(text string) (limits []GroupLimit, answer string) {
	sections, err := Parse(text)
	if err != nil {
		return nil, "syntax error\n"
	}
	limits, _ = Limits(File{Sections: sections})
	return limits, spell(limits)
}

// TestCorpus reads configurations of many hosts.
func TestCorpus(t *testing.T) {
	lab.Unit(t)
	all := corpus(t, "8:0", "8:16")
	if len(all) < configsLeast {
		t.Errorf("%d files", len(all))
	}
	for _, c := range all {
		if _, got := given(c.text); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
}
