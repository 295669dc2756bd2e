package trace

import (
	"os"
	"testing"
	"time"
)

func TestReportIsWhatCameSince(t *testing.T) {
	var before, after Snapshot
	before.After, after.After = time.Second, 3*time.Second
	one, two := Cell{Count: 4, Parts: Split{CPU: 40_000}}, Cell{Count: 10, Parts: Split{CPU: 100_000}}
	before.Ops[Write] = Ops{Histogram: *histogram(map[time.Duration]Cell{10 * time.Microsecond: one}), Bytes: 4000, Errors: 1}
	after.Ops[Write] = Ops{Histogram: *histogram(map[time.Duration]Cell{10 * time.Microsecond: two}), Bytes: 10_000, Errors: 1, Most: 10 * time.Microsecond}
	after.Behind[1] = Behind{Requests: 2, Bytes: 8192, Device: time.Second}
	after.MemcgReclaims = Reclaims{Calls: 3, Pages: 96}
	after.Lost.Missed = 7

	r := after.Report(&before, []Kind{Write, Read})
	if r.Took != 2*time.Second || len(r.Ops) != 1 || len(r.Behind) != 1 || r.Lost.Missed != 7 || !r.Lost.Any() {
		t.Fatalf("%+v", r)
	}
	if o := r.Ops[0]; o.Kind != Write || o.Count != 6 || o.Bytes != 6000 || o.Errors != 0 || o.Sum() != 60*time.Microsecond || o.Max != 10*time.Microsecond || o.P999 > o.Max || len(o.Buckets) != 1 || o.Buckets[0].Count != 6 {
		t.Errorf("%+v", o)
	}
	if b := r.Behind[0]; b.Direction() != "write" || !b.ThrottleKnown || b.Requests != 2 || b.Bytes != 8192 || b.Device != time.Second {
		t.Errorf("%+v", b)
	}
	after.Behind[1].Throttle, after.Behind[1].ThrottleMost, after.ThrottleUnseen = time.Second, time.Second, true
	if b := after.Report(&before, nil).Behind[0]; b.ThrottleKnown || b.Throttle != 0 || b.ThrottleMost != 0 {
		t.Errorf("what is not known is something: %+v", b)
	}
	if r.Reclaim.MemcgCalls != 3 || r.Reclaim.MemcgBytes != 96*uint64(os.Getpagesize()) || r.Reclaim.DirectCalls != 0 {
		t.Errorf("%+v", r.Reclaim)
	}
	if none := after.Report(&Snapshot{}, nil); len(none.Ops) != 0 {
		t.Errorf("of no kinds: %+v", none.Ops)
	}
}

func TestKinds(t *testing.T) {
	for k := range Kinds {
		if got, ok := ParseKind(k.String()); !ok || got != k {
			t.Errorf("%s is parsed as %s, %v", k, got, ok)
		}
	}
	if _, ok := ParseKind("open"); ok {
		t.Error("open is a kind")
	}
	names, titles := map[string]bool{}, map[string]bool{}
	for p := range Parts {
		names[p.String()], titles[p.Title()] = true, true
	}
	if len(names) != int(Parts) || len(titles) != int(Parts) {
		t.Errorf("parts are named %v, and %v for people", names, titles)
	}
}
