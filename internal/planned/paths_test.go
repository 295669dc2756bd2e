package planned

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

// hide has processes see a device no more.
func (w *world) hide(t *testing.T, device string, pids ...string) {
	t.Helper()
	for _, pid := range pids {
		file := filepath.Join(w.host.Root, "proc", pid, "mountinfo")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var left string
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, " "+device+" ") {
				left += line
			}
		}
		if left == string(text) {
			t.Fatalf("process %s has no %s", pid, device)
		}
		if err := os.WriteFile(file, []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The containers of a pod can have different disks at one path: each has the limit, whichever container is looked at first.
// One has none there, which is no error as long as another has.
func TestOnePathWithDisksOfItsOwn(t *testing.T) {
	lab.Unit(t)
	for name, c := range map[string]struct{ mount, want string }{
		"two disks":          {"440 430 254:1 /x /data rw - ext4 /dev/vda1 rw\n", "254:16 rbps=- wbps=5000000 riops=- wiops=-; 254:0 rbps=- wbps=5000000 riops=- wiops=-;"},
		"a disk, and memory": {"440 430 0:50 / /data rw - tmpfs tmpfs rw\n", "254:16 rbps=- wbps=5000000 riops=- wiops=-;"},
	} {
		for _, reversed := range []bool{false, true} {
			w := newPods(t, map[string]string{"weir.io/on.data": "path=/data write=5M"})
			w.hide(t, "/dev/vdb", "4910")
			w.mount(t, "4910", c.mount)
			m := w.manager(t, "")
			m.Config.Annotated = true
			its, err := w.host.Target(t.Context(), "pod:"+podUID)
			if err != nil || len(its.Firsts) != 2 {
				t.Fatalf("%+v, %v", its, err)
			}
			if reversed {
				slices.Reverse(its.Firsts)
			}
			l := targets.Listed{Kind: "pod", Name: "prod/web", Names: []string{"web"}, Namespace: "prod", UID: podUID, Annotations: map[string]string{"weir.io/on.data": "path=/data write=5M"}}
			found := m.Given(t.Context(), l, its)
			if err := m.PutGiven(t.Context(), &found); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, want := strings.Split(strings.TrimSuffix(w.inForce(t, ""), ";"), "; "), strings.Split(strings.TrimSuffix(c.want, ";"), "; ")
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s, reversed %t: %q, want %q", name, reversed, got, want)
			}
		}
	}
}
