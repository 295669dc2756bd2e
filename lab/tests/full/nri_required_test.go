package full

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// requiring has containerd start no container without weir, but those that are let off, as the guide's example has it.
const requiring = `[plugins.'io.containerd.nri.v1.nri'.default_validator]
enable = true
required_plugins = ["weir"]
tolerate_missing_plugins_annotation = "start-without-nri-plugins"
`

// single has containerd start no container without weir whose pod says so.
const single = "[plugins.'io.containerd.nri.v1.nri'.default_validator]\nenable = true\n"

// Where containerd requires weir, no pod starts without it, and each is limited that does.
func TestNRIRequired(t *testing.T) {
	e := needNRI(t, lab.NewContainerd, lab.Containerd, lab.Systemd, lab.V2, lab.FS("ext4"))
	limited := map[string]string{"weir.io/write": fmt.Sprint(nriRate)}
	for _, c := range []struct {
		name, config string
		held, free   map[string]string // annotations of pods that need weir, and of those that do not
	}{
		{"all pods", requiring, limited, map[string]string{"start-without-nri-plugins": "true", "weir.io/write": fmt.Sprint(nriRate)}},
		{"pods that ask for it", single, map[string]string{"required-plugins.noderesource.dev": "[weir]", "weir.io/write": fmt.Sprint(nriRate)}, limited},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := prepareNRI(t, e, "cgroupfs", c.config)
			begin := func(annotations map[string]string) (nriPod, error) {
				return n.begin(t, "default", annotations, map[string]string{"/data": n.disk.Dir}, "/bin/sleep", "100000")
			}
			rule := func(p nriPod) string { return ruleIn(t, filepath.Join(p.dir, "io.max"), n.disk.Number) }
			without := func(when string) {
				t.Helper()
				if _, err := begin(c.held); err == nil || !strings.Contains(err.Error(), "weir") {
					t.Errorf("%s a pod that needs weir: %v", when, err)
				}
				if free, err := begin(c.free); err != nil {
					t.Errorf("%s a pod that does not need weir: %v", when, err)
				} else if got := rule(free); got != "" {
					t.Errorf("%s the rule is %q", when, got)
				}
			}
			without("before weir")
			n.serve(t)
			first, err := begin(c.held)
			if err != nil {
				t.Fatalf("with weir: %v", err)
			}
			if got := rule(first); got != ruleOf(n.e, nriRate) {
				t.Errorf("with weir the rule is %q", got)
			}
			if err := n.weird.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = n.weird.Wait()
			without("after weir")
			if got := rule(first); got != ruleOf(n.e, nriRate) {
				t.Errorf("after weir's end the rule is %q", got)
			}
			n.serve(t)
			again, err := begin(c.held)
			if err != nil {
				t.Fatalf("with another weir: %v", err)
			}
			if got := rule(again); got != ruleOf(n.e, nriRate) {
				t.Errorf("with another weir the rule is %q", got)
			}
		})
	}
}
