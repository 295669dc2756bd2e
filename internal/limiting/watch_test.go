package limiting

import (
	"reflect"
	"slices"
	"testing"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
)

// The watcher says of each group what Show does.
func TestWatch(t *testing.T) {
	files := map[string]string{"sys/fs/cgroup/alone/io.max": "8:0 rbps=1000 wbps=max riops=max wiops=max\n", "sys/fs/cgroup/batch/memory.stat": "file_dirty 4096\n"}
	m := manager(t, "v2", files, host.Options{})
	w, err := m.Watch(0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s, err := w.Sample(t.Context())
	if err != nil || s.Unread != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	shown, err := m.ShowAll(t.Context(), 0)
	if err != nil || len(shown.Groups) != 3 {
		t.Fatalf("%+v, %v", shown, err)
	}
	for _, g := range s.Groups {
		t.Logf("%s %s", g.Path, g.Target)
	}
	for _, want := range shown.Groups {
		found := false
		for _, g := range s.Groups {
			if g.Path != want.Path {
				continue
			}
			found = true
			if g.Target != want.Target || g.Owner != want.Owner {
				t.Errorf("%s: %s of %v, want %s of %v", g.Path, g.Target, g.Owner, want.Target, want.Owner)
			}
			for _, d := range want.Devices {
				if !sameDevice(g.Devices, d) {
					t.Errorf("%s: %+v, want %+v", g.Path, g.Devices, d)
				}
			}
		}
		if !found {
			t.Errorf("%s is not watched", want.Path)
		}
	}
	batch := s.Groups[1]
	by, all := batch.Devices[0].Holders(limit.WBPS)
	if batch.Path != "/batch" || batch.Devices[0].Total.WrittenBytes != 40000000 || batch.Memory == nil || batch.Memory.Dirty != 4096 {
		t.Errorf("%+v", batch)
	}
	if len(by) == 0 || by[0] != place.Throttle {
		t.Errorf("held by %v, all %v", by, all)
	}
}

func sameDevice(all []watch.Device, d Device) bool {
	return slices.ContainsFunc(all, func(o watch.Device) bool {
		return o.Number == d.Number && o.Node == d.Node && o.Limit == d.Limit && (o.Expected == nil) == (d.Expected == nil) &&
			(o.Expected == nil || reflect.DeepEqual(o.Expected.Cells(), d.Expected.Cells()))
	})
}
