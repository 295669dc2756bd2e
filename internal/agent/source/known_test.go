package source

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/targets"
)

// Of a container with megabytes of labels those are remembered by which the plans go: it has its rules with its birth, too.
// Other plans may go by labels that were forgotten, so they do not count for it until it is learnt again.
func TestALargeContainerIsBorn(t *testing.T) {
	by := func(label string) string {
		return "plans: {small: {write: 1MB/s}, large: {write: 9MB/s}}\nassign: [{label: {" + label + "}, plan: large}]\ndefault: small\n"
	}
	for _, c := range []struct{ then, want string }{{"tier: gold", "wbps=9000000"}, {"team: x", ""}} {
		b, k, kernel, _ := newBirths(t, by("tier: gold"))
		b.Learn("docker", true, targets.Listed{Kind: "docker", Name: "web", Names: []string{"web"}, ID: webID,
			Labels: map[string]string{"chart": strings.Repeat("x", 10<<20), "tier": "gold", "team": "x"}})
		if b.known.bytes == 0 || b.known.bytes > listedBytes {
			t.Errorf("%d bytes are remembered", b.known.bytes)
		}
		if c.want == "" {
			other := readPlans(t, by(c.then))
			k.options.Plans.Set(other)
			if err := b.prepare(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}
		b.putAt(t, k, "/docker/"+webID)
		if (len(kernel.Writes) == 0) != (c.want == "") || c.want != "" && !strings.Contains(kernel.Writes[0].Line, c.want) {
			t.Errorf("%s: %v, want %q", c.then, kernel.Writes, c.want)
		}
	}
}
