package text

import (
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/targets"
)

func TestWhyCommand(t *testing.T) {
	write := limit.Limit{}.With(limit.WBPS, limit.PerSecond(10e6))
	for _, c := range []struct {
		request prove.Request
		version string
		want    string
	}{
		{prove.Request{Target: &targets.Target{Kind: "docker", Name: "web 1"}, Hold: limit.HoldPacer}, "auto", "weir why 'docker:web 1'"},
		{prove.Request{Target: &targets.Target{Kind: "pid", Name: "7"}, Dirs: []string{"/a", "/b c"}}, "v1", "weir why pid:7 --on /a --on '/b c' --cgroup v1"},
		{prove.Request{Asked: []limit.Asked{{On: "/data", Limit: write}}, Hold: limit.HoldAuto}, "", "weir why --write 10MB/s --on /data"},
		{prove.Request{Asked: []limit.Asked{{Limit: write}}, Hold: limit.HoldKernel}, "", "weir why --write 10MB/s --hold kernel"},
	} {
		if got := WhyCommand(c.request, c.version); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
