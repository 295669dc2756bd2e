package pacer

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/state"
)

// That the kernel does not tell what processes have written by their end is on record, with the reason, for each group
// of which that counts.
func TestUncountedIsOnRecord(t *testing.T) {
	dir := state.At(t.TempDir())
	s := &server{dir: dir, exits: exits{missed: uncounted(errors.New("no netlink\nhere"))}, jobs: map[*paced]*held{}}
	for path, m := range map[string]meter{"/a": &written{}, "/b": &escaped{}} {
		j := Job{Limited: Place{"", path}}
		record, err := dir.NewOf(recordKind, j.Limited.String(), j)
		if err != nil {
			t.Fatal(err)
		}
		s.jobs[&paced{meter: m}] = &held{job: j, record: record}
	}
	told := func() (all string) {
		t.Helper()
		s.noted = 0
		s.noteMissed(clockNow())
		jobs, err := Paced(dir)
		if err != nil || len(jobs) != 2 {
			t.Fatalf("%v, %v", jobs, err)
		}
		for _, j := range jobs {
			if j.Missed != "" {
				all += j.Limited.Path + ": " + j.Missed
			}
		}
		return all
	}
	if got := told(); !strings.HasPrefix(got, "/a: what a process writes right before its end is not counted") || !strings.Contains(got, "(no netlink; here)") || strings.Contains(got, "/b") {
		t.Error(got)
	}
	s.exits.missed = uncounted(nil)
	if got := told(); got != "" {
		t.Error(got)
	}
}
