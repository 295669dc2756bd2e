package dirty

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/targets"
)

const v2 = cgrouptest.V2Dir

// On v1 a target's memory group is in another hierarchy, where one of its processes tells it.
func TestGroupOfV1(t *testing.T) {
	files := map[string]string{
		"proc/1/mountinfo": "30 23 0:26 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
		"proc/7/cgroup":    "2:memory:/m\n1:blkio:/a\n", "proc/8/cgroup": "2:memory:/\n1:blkio:/a\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/m/memory.limit_in_bytes": "1048576\n",
		"sys/fs/cgroup/memory/m/memory.stat": "cache 0\ntotal_dirty 4096\ntotal_writeback 0\n", "sys/fs/cgroup/memory/m/memory.usage_in_bytes": "0\n",
		"sys/fs/cgroup/memory/memory.stat":   "cache 0\n",
		cgrouptest.V1Dir + "/a/cgroup.procs": "",
	}
	h := cgrouptest.New(t, cgroupfs.V1, files)
	for _, c := range []struct {
		pid       int
		want, why string
	}{
		{7, "/m", ""},
		{8, "", "it is in the root memory cgroup, whose figures are the host's"},
		{9, "", "its process is gone"},
		{0, "", "/a has no process, so weir cannot find its memory cgroup"},
	} {
		g, why, err := groupOf(h.FS, targets.Target{Group: h.Group("/a"), PID: c.pid})
		if err != nil || why != c.why || (g == nil) != (c.want == "") || g != nil && g.Path() != c.want {
			t.Errorf("of process %d: %v, %q, %v", c.pid, g, why, err)
		}
	}
	without := cgrouptest.New(t, cgroupfs.V1, map[string]string{cgrouptest.V1Dir + "/a/cgroup.procs": ""})
	if g, why, err := groupOf(without.FS, targets.Target{Group: without.Group("/a"), PID: 7}); g != nil || why != "no mounted cgroup hierarchy has the memory controller" || err != nil {
		t.Errorf("without the controller: %v, %q, %v", g, why, err)
	}
}

func TestGroupOfV2(t *testing.T) {
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{v2 + "/cgroup.controllers": "io memory\n", v2 + "/a/cgroup.procs": "",
		v2 + "/a/memory.max": "max\n", v2 + "/a/memory.high": "max\n", v2 + "/a/memory.stat": "file_dirty 4096\nfile_writeback 0\n", v2 + "/off/cgroup.procs": ""})
	if g, why, err := groupOf(h.FS, targets.Target{Group: h.Group("/a")}); err != nil || g == nil || g.Path() != "/a" || why != "" {
		t.Errorf("%v, %q, %v", g, why, err)
	}
	if g, why, err := groupOf(h.FS, targets.Target{Group: h.Group("/off")}); err != nil || g != nil || why != "the memory controller is not enabled for /off" {
		t.Errorf("%v, %q, %v", g, why, err)
	}
}

func TestLook(t *testing.T) {
	root := host(t, map[string]string{"proc/vmstat": "nr_dirty 3\nnr_writeback 1\nnr_dirty_threshold 20\nnr_dirty_background_threshold 10\n"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	seen := 0
	r, err := Look(ctx, root, nil, nil, time.Hour, func(Reading) { seen++ })
	if err != nil || seen != 2 || len(r.Readings) != 2 || r.Target != nil || r.Kernel == "" || r.Settings.Ratio != 10 || r.Took() != r.Readings[1].At {
		t.Errorf("%+v, %d seen, %v", r, seen, err)
	}
}

// Words tell whether writers were throttled, or why that is not known.
func TestWords(t *testing.T) {
	l := &Levels{Background: 10e6, Throttle: 15e6, Limit: 20e6}
	of := func(dirty uint64, levels *Levels) Reading {
		return Reading{Host: Count{Dirty: dirty}, HostLevels: levels}
	}
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{v2 + "/a/cgroup.procs": ""})
	v1 := cgrouptest.New(t, cgroupfs.V1, map[string]string{cgrouptest.V1Dir + "/a/cgroup.procs": ""})
	a, b := h.Group("/a"), v1.Group("/a")
	grouped := func(levels *Levels) Reading {
		r := of(1e6, l)
		r.Group, r.OwnLevels = &Count{Dirty: 4e6}, levels
		return r
	}
	for _, c := range []struct {
		report Report
		want   string
	}{
		{Report{Readings: []Reading{of(5e6, l)}}, "host: at most 5.00 MB dirty or in writeback, 25 % of the threshold (20.0 MB, the flusher's 10.0 MB); writers are throttled from halfway between the two, 15.0 MB: they were not"},
		{Report{Readings: []Reading{of(16e6, l)}}, "they were, in 1 of 1 reading"},
		{Report{Readings: []Reading{of(16e6, l), of(1, l)}}, "they were, in 1 of 2 readings"},
		{Report{Readings: []Reading{of(16e6, nil)}}, "; the thresholds are not known here"},
		{Report{Readings: []Reading{grouped(l)}, Group: &a}, "memory cgroup /a: at most 4.00 MB dirty or in writeback, 20 % of the threshold (its own, estimated, on file systems with cgroup writeback: 20.0 MB"},
		{Report{Readings: []Reading{grouped(nil)}, Group: &a}, "without a memory limit the group has no dirty threshold of its own"},
		{Report{Readings: []Reading{grouped(nil)}, Group: &b}, "cgroup v1 has no dirty threshold per group"},
		{Report{Readings: []Reading{of(1, l)}, Group: &a}, "memory cgroup /a: it is gone"},
		{Report{Readings: []Reading{of(1, l)}, Target: &targets.Target{Kind: "pid", Name: "7"}, NoGroup: "its process is gone"}, "pid:7: not shown: its process is gone"},
		{Report{Readings: []Reading{of(1, l)}, Bounded: []kernel.Bounded{{Name: "sda", MaxPercent: 5}}}, "device sda: at most 5 % of the host's threshold"},
	} {
		if words := strings.Join(c.report.Words(), "\n"); !strings.Contains(words, c.want) {
			t.Errorf("%q is missing in\n%s", c.want, words)
		}
	}
}
