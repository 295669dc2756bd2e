package agent

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/lab"
)

// weir top that follows weird has each container's plan, and what weird and the pacer know of the one that is at
// its limit.
func TestTopKnowsWhatWeirdKnows(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.Newest)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	busy, quiet, other := g.start("web-busy", nil, "busy", disk.Node), g.start("web-quiet", nil), g.start("other", nil)
	w := newWeird(t, g, two(disk))
	w.start()
	var last []byte
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%.6000s", last)
		}
	})
	lab.Await(t, 2*patience, "weird to tell what it knows", func() bool {
		text, err := exec.Command("weird", "top", "--json", "--all", "--socket", filepath.Join(w.api, "read.sock")).Output()
		if err != nil {
			t.Fatal(err)
		}
		last = text
		var doc api.Top
		if err := json.Unmarshal(text, &doc); err != nil || doc.Source.From != api.FromWeird {
			t.Fatalf("%v, %+v", err, doc.Source)
		}
		of := map[string]api.TopGroup{}
		for _, one := range doc.Groups {
			of[filepath.Base(one.Cgroup)] = one
		}
		for _, c := range []*container{busy, quiet} {
			if one, there := of[c.id]; !there || one.Plan == nil || *one.Plan != "small" || one.Target != "docker:"+c.name {
				return false // its name is asked for now and then
			}
		}
		if one, there := of[other.id]; there && one.Plan != nil {
			t.Errorf("a container without a plan has %s", *one.Plan)
		}
		h, p := of[busy.id].Held, of[busy.id].Paced // a verdict or a finding; or what the pacer says
		return h != nil && (h.State != string(held.NotTold) || h.Why != "") || p != nil && p.PausedSeconds != nil && *p.PausedSeconds > 0
	})
	table, err := exec.Command("weird", "top", "--once", "--socket", filepath.Join(w.api, "read.sock")).Output()
	if err != nil || !strings.Contains(string(table), "from weird") || !strings.Contains(string(table), "PLAN") {
		t.Errorf("%v\n%s", err, table)
	}
}
