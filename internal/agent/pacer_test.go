package agent

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/lab"
)

// What a pacer in weird's sandbox cannot count is in weird's log, where the pacer holds all buffered writes.
func TestUncountedIsTold(t *testing.T) {
	lab.Unit(t)
	for version, want := range map[string]bool{"v1": true, "v2": false} {
		h := hosttest.Open(t, version, nil, host.Options{})
		var log strings.Builder
		a := &Agent{options: Options{Log: slog.New(slog.NewTextHandler(&log, nil)),
			Open: func() (*host.Host, error) { return host.Open(host.Options{Root: h.Root}) }}}
		a.tellUncounted(func() string { return "" })
		if log.Len() > 0 {
			t.Errorf("%s: nothing is missed: %s", version, &log)
		}
		a.tellUncounted(func() string { return "short writes are not counted" })
		if got := strings.Contains(log.String(), "short writes are not counted") && strings.Contains(log.String(), "exits.conf"); got != want {
			t.Errorf("%s: %s", version, &log)
		}
	}
}
