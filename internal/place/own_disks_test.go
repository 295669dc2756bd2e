package place_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

func TestOwnDisks(t *testing.T) {
	devices := hosttest.Open(t, "v2", nil, host.Options{}).Devices()
	both := limit.Limit{}.With(limit.RBPS, limit.PerSecond(1)).With(limit.WBPS, limit.PerSecond(2))
	reads, writes := limit.Limit{RBPS: both.RBPS}, limit.Limit{WBPS: both.WBPS}
	nowhere := errors.New("its image is on another host")
	for name, c := range map[string]struct {
		target targets.Target
		asked  []limit.Asked
		want   []limit.Asked
		notes  int
		fails  bool
	}{
		"mounts tell":       {targets.Target{}, []limit.Asked{{Limit: both}}, []limit.Asked{{Limit: both}}, 0, false},
		"two disks":         {targets.Target{Disks: []string{"/dev/vda", "/dev/vdb"}}, []limit.Asked{{Limit: both}}, []limit.Asked{{On: "/dev/vda", Limit: both}, {On: "/dev/vdb", Limit: both}}, 0, false},
		"one is only read":  {targets.Target{Disks: []string{"/dev/vda"}, ReadDisks: []string{"/dev/vdb"}}, []limit.Asked{{Limit: both}}, []limit.Asked{{On: "/dev/vda", Limit: both}, {On: "/dev/vdb", Limit: reads}}, 0, false},
		"a place stays":     {targets.Target{Disks: []string{"/dev/vda"}}, []limit.Asked{{On: "/data", Limit: both}}, []limit.Asked{{On: "/data", Limit: both}}, 0, false},
		"a question":        {targets.Target{ReadDisks: []string{"/dev/vdb"}}, []limit.Asked{{}}, []limit.Asked{{On: "/dev/vdb"}}, 0, false},
		"one is not here":   {targets.Target{Disks: []string{"/dev/vda", "/dev/none"}}, []limit.Asked{{Limit: both}}, []limit.Asked{{On: "/dev/vda", Limit: both}}, 1, false},
		"none is here":      {targets.Target{Disks: []string{"/dev/none"}}, []limit.Asked{{Limit: both}}, nil, 1, true},
		"all are only read": {targets.Target{ReadDisks: []string{"/dev/vdb"}}, []limit.Asked{{Limit: writes}}, nil, 0, true},
		"none on this host": {targets.Target{NoDisks: nowhere}, []limit.Asked{{Limit: both}}, nil, 0, true},
		"none, and a place": {targets.Target{NoDisks: nowhere}, []limit.Asked{{On: "/data", Limit: both}}, []limit.Asked{{On: "/data", Limit: both}}, 0, false},
	} {
		got, notes, err := place.OwnDisks(context.Background(), devices, c.asked, c.target)
		if (err != nil) != c.fails || len(notes) != c.notes {
			t.Errorf("%s: %v, notes %v", name, err, notes)
		}
		if err != nil && !errors.Is(err, nowhere) && !fault.IsUnsupported(err) {
			t.Errorf("%s: %T", name, err)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %+v, want %+v", name, got[i], c.want[i])
			}
		}
	}
}
