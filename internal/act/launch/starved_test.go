package launch

import (
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// Where systemd has removed a scope's group, the group above tells of its kills.
func TestStarved(t *testing.T) {
	const slice = cgrouptest.V2Dir + "/weir.slice/"
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{
		slice + "memory.events":      "oom 4\noom_kill 3\n",
		slice + "kept/memory.events": "oom_kill 0\n",
		slice + "full/memory.events": "oom_kill 1\n",
		slice + "none/cgroup.procs":  "",
	})
	for _, c := range []struct {
		group  string
		above  uint64
		killed bool
		want   bool
	}{
		{"full", 3, true, true}, {"kept", 2, true, false}, {"none", 2, true, false},
		{"gone", 2, true, true}, {"gone", 3, true, false}, {"gone", 2, false, false},
	} {
		room := &Room{joined: []cgroupfs.Group{h.Group("/weir.slice/" + c.group)}}
		if got := room.starved(c.above, c.killed); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		if got := room.killedAbove(); got != 3 {
			t.Errorf("%d killed above %s", got, c.group)
		}
	}
}
