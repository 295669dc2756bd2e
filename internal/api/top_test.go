package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/lab"
)

// What is not known is null in the document, and not 0.
func TestTopOf(t *testing.T) {
	lab.Unit(t)
	disk := blkdev.Number{Major: 8}
	s := &watch.Snapshot{At: time.Unix(1e9, 0).UTC(), Window: 2 * time.Second, Version: cgroupfs.V2, Watched: 9, Groups: []*watch.Group{
		{Path: "/a", Target: "cgroup:/a", Devices: []watch.Device{{Number: disk, Node: "/dev/sda", Limit: limit.None.With(limit.WBPS, limit.PerSecond(10))}}},
		{Path: "/b", Target: "cgroup:/b", Pressure: &watch.Pressure{Total: cgroupfs.Pressure{Some: 1500 * time.Millisecond}, Some: 25, Known: true}, Memory: &watch.Memory{Dirty: 5, Writeback: 2},
			Paced: &watch.Paced{WBPS: 7}, Devices: []watch.Device{{Number: disk, Node: "/dev/sda", Counted: true, Total: cgroupfs.Stat{Device: disk, WrittenBytes: 30}, Rates: &watch.Rates{WBPS: 9},
				Limit: limit.None.With(limit.WBPS, limit.PerSecond(10))}}},
		{Path: "/c", Target: "cgroup:/c", Paced: &watch.Paced{WBPS: 8}, Paused: &watch.Paused{Total: 12500 * time.Millisecond}},
		{Path: "/d", Target: "cgroup:/d", Paced: &watch.Paced{WBPS: 9}, Paused: &watch.Paused{Total: 2 * time.Second, Share: 40, Known: true}},
	}}
	got, err := json.Marshal(TopOf(s, nil, TopBeside{Plans: map[string]string{"/a": "small"}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"schema":"weir.top/1","time":"2001-09-09T01:46:40Z","window_seconds":2,"cgroup_version":2,"source":{"from":"","version":"","why":""},"watched":9,"unread":0,"unreadable":"","pressure":null,"disks":[],"groups":[`,
		`{"target":"cgroup:/a","cgroup":"/a","owner":{"kind":""},"devices":[{"device":"/dev/sda","number":"8:0","below":[],"total":null,"rates":null,`,
		`"percent":{"rbps":null,"wbps":null,"riops":null,"wiops":null},"expected":[],"foreign":null}],"pressure":null,"dirty_bytes":null,"writeback_bytes":null,"paced":null,"plan":"small","held":null}`,
		`"total":{"device":"8:0","read_bytes":0,"written_bytes":30,"reads":0,"writes":0},"rates":{"rbps":0,"wbps":9,"riops":0,"wiops":0},`,
		`"percent":{"rbps":null,"wbps":90,"riops":null,"wiops":null}`,
		`"pressure":{"some_seconds":1.5,"full_seconds":0,"some_percent":25,"full_percent":0},"dirty_bytes":5,"writeback_bytes":2,"paced":{"wbps":7,"escapes":false,"lapsed":"","missed":"","paused_seconds":null,"paused_percent":null},"plan":null,"held":null}`,
		`"paced":{"wbps":8,"escapes":false,"lapsed":"","missed":"","paused_seconds":12.5,"paused_percent":null},"plan":null,"held":null}`,
		`"paced":{"wbps":9,"escapes":false,"lapsed":"","missed":"","paused_seconds":2,"paused_percent":40},"plan":null,"held":null}`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	if one := TopOf(s, func(g *watch.Group) bool { return g.Path == "/b" }, TopBeside{}); len(one.Groups) != 1 || one.Groups[0].Cgroup != "/b" {
		t.Errorf("%+v", one.Groups)
	}
}
