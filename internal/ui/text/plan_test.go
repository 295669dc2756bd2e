package text

import (
	"errors"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/lab"
)

func TestPlanTargets(t *testing.T) {
	lab.Unit(t)
	sda := blkdev.Device{Number: blkdev.Number{Major: 8}, Node: "/dev/sda"}
	ten := limit.None.With(limit.WBPS, limit.PerSecond(10e6))
	small, none := plans.Choice{Plan: "small", By: "a.yaml:5:5"}, plans.Choice{Plan: plans.None}
	changed := planned.Target{Name: "docker:b", Choice: small, State: planned.Changed, Rows: []planned.Device{{Device: sda, Now: limit.None, Plan: ten}}}
	changed.Result = limiting.Result{Notes: []note.Note{note.Warningf("x", "it is slow"), note.Infof("y", "docker:b is known")}}
	changed.Result.Decided.Places = []place.Expected{{Placed: place.Placed{Device: sda, Limit: limit.Limit{WBPS: limit.PerSecond(10e6)}},
		Expectation: place.Expectation{Direct: place.By{Mechanism: place.Throttle}, Sync: place.By{Mechanism: place.Throttle}, Buffered: place.By{Why: "no writeback"}}}}
	r := planned.Report{Others: []string{"cgroup:/x"}, Targets: []planned.Target{
		{Name: "docker:a", Choice: small, State: planned.InForce, Rows: []planned.Device{{Device: sda, Now: ten, Plan: ten}}},
		changed,
		{Name: "docker:c", Choice: none, State: planned.Changed, Rows: []planned.Device{{Device: sda, Now: ten, Plan: limit.None}}},
		{Name: "docker:d", Choice: small, State: planned.Differs, Unpaced: true},
		{Name: "docker:e", Choice: small, State: planned.Failed, Err: errors.New("x")},
		{Name: "docker:f", Choice: none, State: planned.Gone},
		{Name: "pod:a/b", Choice: none, State: planned.Kept, Rows: []planned.Device{{Device: sda, Now: ten, Plan: ten}}},
		{Name: "docker:g", Choice: plans.Choice{Plan: plans.None, Refused: "its own label asks for \x1b"}, State: planned.NoPlan},
	}}
	wrote(t, "targets", func(out *cli.Out) { PlanTargets(out, r) }, "",
		"docker:a  plan small (a.yaml:5:5): in force\n"+
			"  /dev/sda (8:0) write: 10 MB/s\n"+
			"docker:b  plan small (a.yaml:5:5): changed\n"+
			"  /dev/sda (8:0) write: was none, now 10 MB/s\n"+
			"docker:c  no plan any more: changed\n"+
			"  /dev/sda (8:0) write: was 10 MB/s, now none\n"+
			"docker:d  plan small (a.yaml:5:5): its limits differ\n"+
			"  weir's pacer does not hold its buffered writes\n"+
			"docker:e  plan small (a.yaml:5:5): failed\n"+
			"docker:f  no plan: it is gone\n"+
			"pod:a/b  weird has set its limits by what it is told of the pod; weir leaves them alone\n"+
			"  /dev/sda (8:0) write: 10 MB/s\n"+
			"docker:g  no plan\n"+
			"  its own label asks for \\x1b\n"+
			"cgroup:/x  has a limit that no plan names; weir leaves it alone\n")
	wrote(t, "notes", func(out *cli.Out) { PlanNotes(out, r) },
		"weir: warning: docker:b: it is slow\nweir: docker:b is known\nweir: docker:b: /dev/sda: expected NOT to hold: buffered writes (no writeback)\n", "")
	wrote(t, "nothing", func(out *cli.Out) { PlanTargets(out, planned.Report{}) }, "", "no running target has a plan\n")
}
