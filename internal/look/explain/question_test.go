package explain

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/targets"
)

func TestQuestionOf(t *testing.T) {
	h := hosttest.Open(t, "v2", nil, host.Options{})
	write := limit.Limit{}.With(limit.WBPS, limit.PerSecond(5e6))
	for name, c := range map[string]struct {
		request Request
		target  string // "" for none
		places  []limit.Asked
		hold    limit.Hold
	}{
		"this host":             {Request{}, "", nil, limit.HoldAuto},
		"places of this host":   {Request{Asked: []limit.Asked{{On: "/data"}}}, "", []limit.Asked{{On: "/data"}}, limit.HoldAuto},
		"a path":                {Request{Subject: "/data"}, "", []limit.Asked{{On: "/data"}}, limit.HoldAuto},
		"a path with a limit":   {Request{Subject: "/data", Asked: []limit.Asked{{Limit: write}}}, "", []limit.Asked{{On: "/data", Limit: write}}, limit.HoldAuto},
		"a device by its name":  {Request{Subject: "vdb"}, "", []limit.Asked{{On: "vdb"}}, limit.HoldAuto},
		"a target as it is":     {Request{Subject: "pid:4711"}, "pid:4711", []limit.Asked{{}}, ""},
		"a target with a limit": {Request{Subject: "cgroup:/batch", Asked: []limit.Asked{{Limit: write}}}, "cgroup:/batch", []limit.Asked{{Limit: write}}, limit.HoldAuto},
		"a place of a target":   {Request{Subject: "cgroup:/batch", Asked: []limit.Asked{{On: "/data"}}}, "cgroup:/batch", []limit.Asked{{On: "/data"}}, ""},
	} {
		c.request.Hold = limit.HoldAuto
		q, notes, err := QuestionOf(context.Background(), h, c.request)
		if err != nil || len(notes) > 0 {
			t.Errorf("%s: %v, %v", name, err, notes)
			continue
		}
		named := ""
		if q.Target != nil {
			named = q.Target.String()
		}
		var places []limit.Asked
		for _, p := range q.Places {
			places = append(places, p.Asked)
		}
		if named != c.target || !slices.Equal(places, c.places) || q.Hold != c.hold {
			t.Errorf("%s: target %q, places %+v, hold %q", name, named, places, q.Hold)
		}
	}
}

// Who says nothing of what holds buffered writes supposes what weir run does without a word of it.
func TestQuestionWithoutAHold(t *testing.T) {
	write := limit.Limit{}.With(limit.WBPS, limit.PerSecond(5e6))
	if q := About(nil, []limit.Asked{{Limit: write}}, ""); q.Hold != limit.HoldAuto {
		t.Errorf("hold %q", q.Hold)
	}
	if q := About(&targets.Target{}, []limit.Asked{{}}, limit.HoldPacer); q.Hold != "" {
		t.Errorf("of a target as it is: hold %q", q.Hold)
	}
}

func TestQuestionRefused(t *testing.T) {
	h := hosttest.Open(t, "v2", nil, host.Options{})
	var twice *fault.Remedied
	_, _, err := QuestionOf(context.Background(), h, Request{Subject: "/data", Asked: []limit.Asked{{On: "/srv"}}})
	if !errors.As(err, &twice) || twice.Remedy != (fault.Remedy{Do: fault.DropPlace, Target: "/srv"}) || fault.ClassOf(err) != fault.WrongUse {
		t.Errorf("a place twice: %v", err)
	}
	var unknown *targets.NotFound
	if _, _, err := QuestionOf(context.Background(), h, Request{Subject: "cgroup:/none"}); !errors.As(err, &unknown) {
		t.Errorf("a target that is not there: %v", err)
	}
}

// Who keeps limits is read from the host's files.
func TestSourcesKnowWhoKeeps(t *testing.T) {
	text, err := dropin.Text("web.service", "/usr/bin/weir", []limit.Asked{{On: "/data", Limit: limit.Limit{}.With(limit.WBPS, limit.PerSecond(5e6))}}, cmdline.Words)
	if err != nil {
		t.Fatal(err)
	}
	h := hosttest.Open(t, "v1", map[string]string{dropin.Path("web.service"): text}, host.Options{})
	sources, err := Sources(h)
	if err != nil {
		t.Fatal(err)
	}
	its, err := h.Target(t.Context(), "cgroup:/batch")
	if err != nil {
		t.Fatal(err)
	}
	for unit, want := range map[string]string{"web.service": filepath.Join(h.Root, dropin.Path("web.service")), "db.service": ""} {
		its.Owner = targets.Owner{Kind: "systemd", Name: unit, Unit: unit}
		if kept, err := sources.Kept(t.Context(), its); err != nil || kept.File != want {
			t.Errorf("%s: %+v, %v; want it in %q", unit, kept, err, want)
		}
	}
}

// What is asked about a host can be answered from its files alone.
func TestQuestionIsAnswered(t *testing.T) {
	h := hosttest.Open(t, "v2", nil, host.Options{})
	q, _, err := QuestionOf(context.Background(), h, Request{Subject: "cgroup:/batch", Hold: limit.HoldAuto})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := Sources(h)
	if err != nil {
		t.Fatal(err)
	}
	if sources.Kept == nil {
		t.Error("who keeps limits is not asked")
	}
	facts, err := why.Gather(context.Background(), sources, q)
	if err != nil {
		t.Fatal(err)
	}
	r := why.Judge(facts)
	if r.Target != "cgroup:/batch" || r.Group == nil || r.Group.Path != "/batch" || len(r.Places) != 2 {
		t.Fatalf("%+v", r)
	}
	if d := r.Places[0].Devices[0]; d.Number != (blkdev.Number{Major: 254}) || d.Limit.Get(limit.WBPS) != limit.PerSecond(10e6) {
		t.Errorf("%+v", d)
	}
}
