package mountinfo

import (
	"fmt"
	"os"
	"strings"
	"testing"

	upstream "github.com/moby/sys/mountinfo"
	"golang.org/x/tools/txtar"
)

// corpusLeast is how many hosts there are at least.
const corpusLeast = 40

// TestCorpus reads the lists of many hosts, in the shapes that distributions, engines and
// appliances have. The answer of each was looked through by hand, and another reader of the
// file agrees wherever it can read it.
func TestCorpus(t *testing.T) {
	const file = "testdata/corpus.txtar"
	corpus, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	hosts := 0
	for i := 0; i+1 < len(corpus.Files); i += 2 {
		host, want := corpus.Files[i], corpus.Files[i+1]
		if want.Name != host.Name+".want" {
			t.Fatalf("%s has no answer", host.Name)
		}
		hosts++
		t.Run(host.Name, func(t *testing.T) {
			got := ""
			for line := range strings.Lines(string(host.Data)) {
				all, left := read(t, line)
				if left.Lines > 0 {
					got += "left out: " + left.Why + "\n"
					continue
				}
				got += spell(all[0]) + "\n"
				asUpstream(t, line, all[0])
			}
			if os.Getenv("WEIR_UPDATE_CORPUS") != "" {
				corpus.Files[i+1].Data = []byte(got)
			} else if got != string(want.Data) {
				t.Errorf("got\n%swant\n%s", got, want.Data)
			}
		})
	}
	if hosts < corpusLeast {
		t.Errorf("%d hosts", hosts)
	}
	if os.Getenv("WEIR_UPDATE_CORPUS") != "" {
		if err := os.WriteFile(file, txtar.Format(corpus), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func spell(i Info) string {
	return fmt.Sprintf("%d in %d: %d:%d %q at %q (%s; %s) %q from %q: %q", i.ID, i.Parent, i.Major, i.Minor, i.Root, i.Point, i.Options, i.Optional, i.FSType, i.Source, i.SuperOptions)
}

// asUpstream compares with the other reader, which loses what follows a space in the options,
// and takes escapes beyond ASCII for runes.
func asUpstream(t *testing.T, line string, o Info) {
	t.Helper()
	theirs, err := upstream.GetMountsFromReader(strings.NewReader(line), nil)
	if err != nil || len(theirs) != 1 {
		t.Errorf("they cannot read %q: %v", line, err)
		return
	}
	u := theirs[0]
	if strings.Contains(o.SuperOptions, " ") {
		if !strings.HasPrefix(o.SuperOptions, u.VFSOptions) && !strings.Contains(o.SuperOptions, " - ") {
			t.Errorf("%q: their options are %q, ours %q", line, u.VFSOptions, o.SuperOptions)
		}
		u.VFSOptions, u.FSType, u.Source = o.SuperOptions, o.FSType, o.Source
	}
	if strings.Contains(line, `\3`) {
		u.Mountpoint = o.Point
	}
	got := upstream.Info{ID: o.ID, Parent: o.Parent, Major: int(o.Major), Minor: int(o.Minor), Root: o.Root, Mountpoint: o.Point,
		Options: o.Options, Optional: o.Optional, FSType: o.FSType, Source: o.Source, VFSOptions: o.SuperOptions}
	if got != *u {
		t.Errorf("%q\n got %+v\nwant %+v", line, got, *u)
	}
}
