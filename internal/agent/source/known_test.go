package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/targets"
)

// Of a container with megabytes of labels those are remembered by which the plans go: it has its rules with its birth, too.
// It has them also by other plans, if these go by no other labels. If they do, it has none until it is learnt again, neither
// its own nor those of its unit.
func TestALargeContainerIsBorn(t *testing.T) {
	by := func(label string) string {
		return "plans: {small: {write: 1MB/s}, large: {write: 9MB/s}}\nassign: [{label: {" + label + "}, plan: large}, {unit: 'docker-*.scope', plan: small}]\n"
	}
	scope := "/system.slice/docker-" + webID + ".scope"
	for _, c := range []struct {
		label, then string
		bytes       int
		path, want  string
	}{
		{"tier: gold", "", 10 << 20, "/docker/" + webID, "wbps=9000000"},
		{"tier: gold", by("tier: gold"), 10 << 20, "/docker/" + webID, "wbps=9000000"},
		{"tier: gold", by("tier: gold"), 10 << 20, scope, "wbps=9000000"},
		{"tier: gold", by("tier: iron"), 10 << 20, scope, "wbps=1000000"},
		{"tier: gold", "plans: {small: {write: 1MB/s}}\nassign: [{docker: web, plan: small}]\n", 10 << 20, "/docker/" + webID, "wbps=1000000"},
		{"tier: gold", by("team: x"), 10 << 20, "/docker/" + webID, ""},
		{"tier: gold", by("team: x"), 10 << 20, scope, ""},
		{"chart: x", "", 10 << 20, scope, ""}, // nor is it remembered by a label that is too large
		{"team: x", by("tier: gold"), 10, scope, "wbps=9000000"},
	} {
		b, k, kernel, _ := newBirths(t, by(c.label))
		for file, text := range map[string]string{"io.max": "", "cgroup.controllers": "io\n"} {
			file = filepath.Join(k.host.Root, "sys/fs/cgroup", scope, file)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b.Learn("docker", true, targets.Listed{Kind: "docker", Name: "web", Names: []string{"web"}, ID: webID,
			Labels: map[string]string{"chart": strings.Repeat("x", c.bytes), "tier": "gold", "team": "x"}})
		if b.known.bytes == 0 || b.known.bytes > listedBytes {
			t.Errorf("%d bytes are remembered", b.known.bytes)
		}
		if c.then != "" {
			other := readPlans(t, c.then)
			k.options.Plans.Set(other)
			if err := b.prepare(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}
		b.putAt(t, k, c.path)
		if (len(kernel.Writes) == 0) != (c.want == "") || c.want != "" && !strings.Contains(kernel.Writes[0].Line, c.want) {
			t.Errorf("%s, then %s, in %s: %v, want %q", c.label, c.then, c.path, kernel.Writes, c.want)
		}
	}
}
