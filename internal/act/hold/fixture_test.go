package hold

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/lab"
)

// fixture opens a host of files, and its group x.
func fixture(t *testing.T, version cgroupfs.Version, files map[string]string) cgroupfs.Group {
	t.Helper()
	return cgrouptest.New(t, version, files).Group("/x")
}

// FuzzJournal: a record of a half-done change takes back only what has the value that it was about to
// set.
func FuzzJournal(f *testing.F) {
	lab.Unit(f)
	f.Add([]byte(`{"version":2,"group":"/x","rules":[{"device":"8:0","before":{"wbps":5},"after":{"wbps":7}}]}`))
	f.Add([]byte(`{"rules":[{"device":"8:16","before":{"wbps":"max"},"after":{"wbps":0}},{"device":"x"}],"pacing":{"before":null}}`))
	f.Add([]byte(`{"group":"../..","rules":[{"device":"8:0","after":{"rbps":18446744073709551615}}]}`))
	h := cgrouptest.New(f, cgroupfs.V2, map[string]string{"x/io.max": "8:0 rbps=max wbps=7 riops=max wiops=max\n"})
	g := h.Group("/x")
	f.Fuzz(func(t *testing.T, data []byte) {
		var j journal
		if json.Unmarshal(data, &j) != nil {
			return
		}
		for _, r := range j.Rules {
			now := limit.Limit{WBPS: limit.PerSecond(7)}
			back := r.back(now, g.Hierarchy().Keeps)
			for _, k := range limit.Keys {
				if back.Get(k).IsSet() && (!r.After.Get(k).IsSet() || back.Get(k) != r.Before.Get(k)) {
					t.Errorf("%q sets %s of %s", data, strings.ToUpper(k.String()), r.Device)
				}
			}
		}
	})
}
