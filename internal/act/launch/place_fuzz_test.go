package launch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// FuzzPlaces: a record of any content removes nothing but groups of the hierarchy, and none that has
// processes.
func FuzzPlaces(f *testing.F) {
	f.Add([]byte(`[{"controller":"io","version":2,"path":"/y"}]`))
	f.Add([]byte(`[{"controller":"io","version":2,"path":"/x"},{"path":"/.."}]`))
	f.Add([]byte(`[{"version":2,"path":"../other"},{"version":1,"controller":"blkio","path":"/y"},{"version":2,"path":"/y/../../other","linger":true}]`))
	h := cgrouptest.New(f, cgroupfs.V2, map[string]string{"sys/fs/cgroup/x/cgroup.procs": "1\n"})
	empty, other := filepath.Join(h.Root, cgrouptest.V2Dir, "y"), filepath.Join(h.Root, "sys/fs/other")
	if err := os.Mkdir(other, 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var places []place
		if json.Unmarshal(data, &places) != nil {
			return
		}
		if err := os.MkdirAll(empty, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, p := range places {
			_ = p.remove(h.FS, true) // what it says of a path that is none is its own affair
		}
		for _, dir := range []string{other, filepath.Join(h.Root, cgrouptest.V2Dir, "x"), filepath.Join(h.Root, cgrouptest.V2Dir)} {
			if _, err := os.Stat(dir); err != nil {
				t.Errorf("%q removes %s: %v", data, dir, err)
			}
		}
	})
}
