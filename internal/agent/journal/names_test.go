package journal

import (
	"log/slog"
	"testing"

	"github.com/weir-io/weir/lab"
)

// Targets whose names are not UTF-8 are told apart.
func TestNamesThatAreNotUTF8(t *testing.T) {
	lab.Unit(t)
	j := New(t.TempDir(), slog.New(slog.DiscardHandler))
	for _, name := range []string{"cgroup:/\xfe", "cgroup:/\xff"} {
		e := named(0)
		e.Target = name
		j.write(e)
	}
	j.shut()
	if l := read(t, j.dir, Query{Target: "cgroup:/\xff"}); len(l.Entries) != 1 || l.Entries[0].Target != "cgroup:/\xff" {
		t.Errorf("%+v", l)
	}
}
