package svg

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/api/apitest"
	"github.com/weir-io/weir/lab"
)

// TestDrawings holds drawings against testdata.
func TestDrawings(t *testing.T) {
	lab.Unit(t)
	for name, draw := range map[string]func(string) error{
		"proof": func(path string) error { return Proof(path, apitest.Proof()) },
		"dirty": func(path string) error { return Dirty(path, apitest.Dirty()) },
		"history": func(path string) error {
			s := apitest.History()
			s.Points = s.Points[290:420]
			return History(path, s)
		},
	} {
		path := filepath.Join(t.TempDir(), name+".svg")
		if err := draw(path); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("testdata/" + name + ".svg")
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}
