package mend

import (
	"maps"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// groupIn makes a host of cgroup v2 with such files, and returns the group /a/b of it.
func groupIn(t *testing.T, files map[string]string) cgroupfs.Group {
	t.Helper()
	all := map[string]string{cgrouptest.V2Dir + "/cgroup.controllers": "io memory\n"}
	for name, text := range files {
		all[cgrouptest.V2Dir+"/"+name] = text
	}
	return cgrouptest.New(t, cgroupfs.V2, all).Group("/a/b")
}

// What counts is the memory that cannot be dropped, up to the smallest bound above.
func TestCrowded(t *testing.T) {
	bounded := map[string]string{"a/b/memory.max": "max\n", "a/b/memory.high": "max\n", "a/memory.max": "67108864\n", "a/memory.high": "max\n"}
	for name, c := range map[string]struct {
		files map[string]string
		why   string
	}{
		"no controller": {map[string]string{"a/b/cgroup.procs": ""}, ""},
		"room":          {map[string]string{"a/memory.current": "33554432\n"}, ""},
		"none":          {map[string]string{"a/memory.current": "33554433\n"}, "cgroup /a has 67.1 MB of memory, of which only 33.6 MB can be used"},
		"of cache": {map[string]string{"a/memory.current": "67108864\n",
			"a/memory.stat": "inactive_file 33554432\nactive_file 4096\nfile_dirty 4096\n"}, ""},
		"of dirty pages": {map[string]string{"a/memory.current": "67108864\n",
			"a/memory.stat": "inactive_file 33554432\nactive_file 4096\nfile_dirty 8192\n"}, "only 33.6 MB can be used"},
	} {
		files := maps.Clone(bounded)
		if name == "no controller" {
			files = map[string]string{}
		}
		maps.Copy(files, c.files)
		why, err := crowded(groupIn(t, files))
		if err != nil || (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q, %v; want %q", name, why, err, c.why)
		}
	}
}
