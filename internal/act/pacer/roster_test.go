package pacer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// A limited group that is gone is an error, on both versions, and so is another one that has
// its name.
func TestALimitedGroupThatIsGone(t *testing.T) {
	for version, dir := range map[cgroupfs.Version]string{cgroupfs.V1: cgrouptest.V1Dir, cgroupfs.V2: cgrouptest.V2Dir} {
		files := map[string]string{dir + "/a/cgroup.procs": "", dir + "/a/cgroup.type": "domain\n", dir + "/a/b/cgroup.procs": "", dir + "/a/b/cgroup.type": "domain\n"}
		h := cgrouptest.New(t, version, files)
		r := roster{limited: h.Group("/a"), name: "x"}
		if _, _, err := r.look(time.Second); err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		top := filepath.Join(h.Root, dir)
		if err := os.RemoveAll(top + "/a/b"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.look(2 * time.Second); err != nil {
			t.Errorf("%s: a group below is gone: %v", version, err)
		}
		if err := os.Rename(top+"/a", top+"/old"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.look(3 * time.Second); !cgroupfs.IsGone(err) {
			t.Errorf("%s: it is gone: %v", version, err)
		}
		for name, text := range files {
			h.Write(name, text)
		}
		if _, _, err := r.look(4 * time.Second); !cgroupfs.IsGone(err) {
			t.Errorf("%s: another has its name: %v", version, err)
		}
	}
}
