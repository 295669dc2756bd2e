package agent

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/lab"
)

// The journal has each change with its reason: of the agent, of others, and of the plans.
func TestJournal(t *testing.T) {
	d := prepare(t, small)
	dir := t.TempDir()
	d.options.Journal = journal.New(dir, slog.New(slog.DiscardHandler))
	d.start()
	d.until("followed", func(s Status) bool { return len(s.Hierarchies) == 1 })
	h, err := d.options.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	file := filepath.Join(h.Root, "sys/fs/cgroup/docker", webID, "io.max")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0) // as the kernel takes a rule: never half of it is seen
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(strings.Replace(string(text), "wbps=1000000", "wbps=7777777", 1)), 0)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	d.until("repaired", func(s Status) bool { return s.Counts.Repaired > 0 && has("small", reconcile.InForce)(s) })
	if err := d.ReloadFor("uid 7"); err != nil {
		t.Fatal(err)
	}
	d.write("plans: {small: {wirte: 1MB/s}}\n")
	d.until("refused", func(s Status) bool { return s.PlansError != "" })
	wants := []struct{ by, what, why, rate string }{
		{"weird", "started", "", ""},
		{"weird", "plans", "2 plans of 1 file", ""},
		{"weird", "set", "the target is new", "max to 1000000"},
		{"other", "changed", "", "1000000 to 7777777"},
		{"weird", "set", "something else had changed its limits", "7777777 to 1000000"},
		{"uid 7", "plans", "2 plans of 1 file", ""},
		{"weird", "refused", "a.yaml:1:", ""},
	}
	missing := "nothing was read"
	for deadline := time.Now().Add(patience); missing != "" && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		l, err := journal.Read(dir, journal.Query{})
		if err != nil {
			t.Fatal(err)
		}
		missing = ""
		at := 0
		for _, want := range wants { // in this order
			for ; at < len(l.Entries); at++ {
				e := l.Entries[at]
				if e.By == want.by && string(e.What) == want.what && strings.Contains(e.Why, want.why) && (want.rate == "" || rateIn(e) == want.rate) {
					break
				}
			}
			if at == len(l.Entries) {
				missing = want.what + " by " + want.by
				break
			}
		}
	}
	if missing != "" {
		l, _ := journal.Read(dir, journal.Query{})
		t.Errorf("%s is missing in %+v", missing, l.Entries)
	}
}

func rateIn(e journal.Entry) string {
	if len(e.Changes) != 1 {
		return ""
	}
	return e.Changes[0].From.Get(limit.WBPS).Kernel() + " to " + e.Changes[0].To.Get(limit.WBPS).Kernel()
}

// Each deed is one entry, and a target whose limits nobody has changed is in none.
func TestDeeds(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	j := journal.New(dir, slog.New(slog.DiscardHandler))
	a := &Agent{options: Options{Journal: j}}
	ten := limit.None.With(limit.RBPS, limit.PerSecond(10))
	target := reconcile.Target{Name: "unit:a.service", Plan: "small", Rates: []reconcile.Rates{{Device: blkdev.Number{Major: 8}, Now: limit.None, Want: ten}, {Device: blkdev.Number{Major: 9}, Now: ten, Want: ten}}}
	same := target
	same.Rates = target.Rates[1:]
	for _, d := range []reconcile.Deed{
		{Target: target, What: reconcile.Put, Why: reconcile.Plan},
		{Target: target, What: reconcile.TakenOff, Why: reconcile.Again},
		{Target: target, What: reconcile.ByOthers},
		{Target: same, What: reconcile.ByOthers}, // the pacer has ended
		{Target: target, What: reconcile.NotDone, Finding: "no such device"},
		{Target: target, What: reconcile.GaveWay, Finding: "again and again"},
	} {
		a.recordDeed(d)
	}
	a.recordDone(planned.Target{Name: "pod:a/b", Choice: plans.Choice{Plan: "p"}, Rows: []planned.Device{{Now: limit.None, Plan: ten}}})
	a.recordPlans("", 0, 0, errors.New("no"))
	ctx, done := a.writeJournal(t.Context())
	ctx()
	<-done
	l, err := journal.Read(dir, journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range l.Entries {
		got = append(got, strings.Join([]string{e.By, string(e.What), e.Target, e.Why}, " "))
		if e.Target != "" && len(e.Changes) != 1 {
			t.Errorf("%+v", e)
		}
	}
	want := `weird set unit:a.service its plan has changed
weird removed unit:a.service the last attempt failed
other changed unit:a.service 
weird failed unit:a.service no such device
weird left-alone unit:a.service again and again
weird set pod:a/b the container runtime asked before it started a container
weird refused  no`
	if strings.Join(got, "\n") != want {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if c := l.Entries[2].Changes[0]; c.From != ten || c.To != limit.None {
		t.Errorf("%+v", c)
	}
}
