package agent

import (
	"testing"

	"github.com/weir-io/weir/lab"
)

// A disk that is mounted while a container runs gets the limit of its plan, long before all targets are compared.
func TestAgentLimitsALaterDisk(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.Once, lab.Loop)
	first := lab.Disk(t, lab.FS("ext4"))
	g := newEngine(t, e)
	w := newWeird(t, g, "plans: {small: {"+smallPlan+"}}\nassign: [{docker: 'web-*', plan: small}]\n")
	c := g.start("web-0", nil)
	w.start()
	g.awaitRules(lab.Patience(t, patience), first, smallRate, c)
	second := lab.DiskOn(t, first)
	t.Logf("a disk is limited %v after its mount", g.awaitRules(lab.Patience(t, patience), second, smallRate, c))
	if counts := w.status().Counts; counts.Missed != 0 || counts.Failures != 0 || counts.Drifts != 0 {
		t.Errorf("%+v", counts)
	}
}
