package cgroupfs_test

import (
	"slices"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

func rates(read, write uint64) limit.Limit {
	l := limit.None
	if read > 0 {
		l = l.With(limit.RBPS, limit.PerSecond(read))
	}
	if write > 0 {
		l = l.With(limit.WBPS, limit.PerSecond(write))
	}
	return l
}

// On v2 the lowest rate on the way to the root binds, and who has it is named.
func TestBindingsOfV2(t *testing.T) {
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{
		cgrouptest.V2Dir + "/a/io.max":   "8:0 rbps=100 wbps=50\n8:16 rbps=7\n",
		cgrouptest.V2Dir + "/a/b/io.max": "8:0 rbps=60 wbps=90\n",
	})
	all, err := h.Group("/a/b").Bindings()
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, want := range []cgroupfs.Binding{
		{Device: blkdev.Number{Major: 8}, Limit: rates(60, 50), Above: []string{"/a"}},
		{Device: blkdev.Number{Major: 8, Minor: 16}, Limit: rates(7, 0), Above: []string{"/a"}},
	} {
		if got := all[i]; got.Device != want.Device || got.Limit != want.Limit || !slices.Equal(got.Above, want.Above) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	all, err = h.Group("/a").Bindings()
	if err != nil || len(all) != 2 || all[0].Limit != rates(100, 50) || all[0].Above != nil {
		t.Errorf("of the upper group: %+v, %v", all, err)
	}
}

// On v1 the rules of groups above do not apply.
func TestBindingsOfV1(t *testing.T) {
	files := map[string]string{}
	for _, group := range []string{"/", "/a/", "/a/b/"} {
		for _, name := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
			files[cgrouptest.V1Dir+group+"blkio.throttle."+name+"_device"] = ""
		}
	}
	files[cgrouptest.V1Dir+"/a/blkio.throttle.write_bps_device"] = "8:0 10\n"
	files[cgrouptest.V1Dir+"/a/b/blkio.throttle.read_bps_device"] = "8:0 60\n"
	all, err := cgrouptest.New(t, cgroupfs.V1, files).Group("/a/b").Bindings()
	if err != nil || len(all) != 1 || all[0].Limit != rates(60, 0) || all[0].Above != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestInside(t *testing.T) {
	const dir = cgrouptest.V2Dir
	v2 := cgrouptest.New(t, cgroupfs.V2, map[string]string{
		dir + "/a/cgroup.procs": "", dir + "/a/b/cgroup.procs": "", dir + "/a/b/c/cgroup.procs": "7\n",
		dir + "/own/cgroup.procs": "8\n", dir + "/own/below/cgroup.procs": "9\n", dir + "/empty/cgroup.procs": "",
	})
	for path, want := range map[string]string{"/a": "/a/b/c", "/own": "/own", "/empty": "/empty"} {
		if got, err := v2.Group(path).Inside(); err != nil || got.Path() != want {
			t.Errorf("inside %s is %s, %v; want %s", path, got.Path(), err, want)
		}
	}
	v1 := cgrouptest.New(t, cgroupfs.V1, map[string]string{cgrouptest.V1Dir + "/a/cgroup.procs": "", cgrouptest.V1Dir + "/a/b/cgroup.procs": "7\n"})
	if got, err := v1.Group("/a").Inside(); err != nil || got.Path() != "/a" {
		t.Errorf("on v1 it is %s, %v", got.Path(), err)
	}
}

// What goes to another group leaves the rules of those on the way to the first group that is above
// both. On v1 it leaves those of its own group, wherever it goes.
func TestLeft(t *testing.T) {
	v2, v1 := cgrouptest.New(t, cgroupfs.V2, nil), cgrouptest.New(t, cgroupfs.V1, nil)
	for _, c := range []struct {
		h        cgrouptest.Host
		from, to string
		want     []string
	}{
		{v2, "/", "/job", nil},
		{v2, "/a", "/a/job", nil},
		{v2, "/a", "/job", []string{"/a"}},
		{v2, "/a.slice/x.service", "/a.slice/job.scope", []string{"/a.slice/x.service"}},
		{v2, "/a.slice/x.service/b", "/a.slice/job.scope", []string{"/a.slice/x.service/b", "/a.slice/x.service"}},
		{v2, "/a", "/ab/job", []string{"/a"}},
		{v1, "/", "/job", nil},
		{v1, "/a", "/a/job", []string{"/a"}},
		{v1, "/a/b", "/a/job", []string{"/a/b"}},
	} {
		var got []string
		for _, g := range c.h.Group(c.from).Left(c.h.Group(c.to)) {
			got = append(got, g.Path())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s from %s to %s: %q, want %q", c.h.IO.Version, c.from, c.to, got, c.want)
		}
	}
}
