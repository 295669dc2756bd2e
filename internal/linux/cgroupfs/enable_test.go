package cgroupfs

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
)

func TestMissingGoesFromTheTopDown(t *testing.T) {
	fs := v2(t, map[string]string{
		"cgroup.subtree_control": "cpu io\n", "a/cgroup.subtree_control": "", "a/b/cgroup.subtree_control": "io memory\n", "a/b/c/cgroup.procs": ""})
	got, err := groupOf(t, fs, "/a/b/c").Missing("io", "memory")
	at := fs.Root() + "/sys/fs/cgroup"
	want := []Write{{at + "/cgroup.subtree_control", "+memory"}, {at + "/a/cgroup.subtree_control", "+io +memory"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Missing = %v, %v; want %v", got, err, want)
	}
	if got, err := groupOf(t, fs, "/").Missing("io"); err != nil || len(got) != 0 {
		t.Errorf("Missing of the root = %v, %v", got, err)
	}
	if _, err := groupOf(t, fs, "/a").Missing("rdma"); !fault.IsUnsupported(err) || !strings.Contains(err.Error(), "cgroup.controllers") {
		t.Errorf("Missing of what the root does not offer: %v", err)
	}
	if got, err := groupOf(t, v1(t, nil), "/a").Missing("io", "memory"); err != nil || len(got) != 0 {
		t.Errorf("Missing on v1 = %v, %v", got, err)
	}
}

func TestCanEnable(t *testing.T) {
	fs := v2(t, map[string]string{
		"cgroup.subtree_control":          "",
		"cgroup.procs":                    "1\n", // the real root may have processes, and has no cgroup.type
		"empty/cgroup.subtree_control":    "",
		"empty/cgroup.type":               "domain\n",
		"empty/cgroup.procs":              "",
		"busy/cgroup.subtree_control":     "",
		"busy/cgroup.type":                "domain\n",
		"busy/cgroup.procs":               "7\n",
		"enabled/cgroup.subtree_control":  "io memory\n",
		"enabled/cgroup.type":             "domain\n",
		"enabled/cgroup.procs":            "7\n",
		"threaded/cgroup.subtree_control": "",
		"threaded/cgroup.type":            "threaded\n",
		"threaded/cgroup.procs":           "",
		// What a group is not given, the one above has to give first.
		"busy/x/cgroup.subtree_control":  "",
		"busy/x/cgroup.type":             "domain\n",
		"busy/x/cgroup.procs":            "",
		"busy/x/cgroup.controllers":      "\n",
		"empty/x/cgroup.subtree_control": "",
		"empty/x/cgroup.type":            "domain\n",
		"empty/x/cgroup.procs":           "",
		"empty/x/cgroup.controllers":     "\n",
		// Who is in a cell is its home's.
		"paced/cgroup.subtree_control":          "",
		"paced/cgroup.type":                     "domain\n",
		"paced/cgroup.procs":                    "",
		"paced/weir-pace-01234567/cgroup.procs": "7\n",
		"paced/x/cgroup.procs":                  "",
		"empty/weir-pace-01234567/cgroup.procs": "",
	})
	for path, want := range map[string]bool{"/paced": false, "/": true, "/empty": true, "/busy": false, "/enabled": true, "/threaded": false, "/busy/x": false, "/empty/x": true} {
		got, err := groupOf(t, fs, path).CanEnable("io", "memory")
		if err != nil || got != want {
			t.Errorf("CanEnable of %s = %t, %v; want %t", path, got, err, want)
		}
	}
	if _, err := groupOf(t, fs, "/gone").CanEnable("io"); !IsGone(err) {
		t.Errorf("CanEnable of a removed group: %v", err)
	}
}

// Controllers are given past nobody who is in a cell: they could not go back.
func TestEnablePastACell(t *testing.T) {
	fs := v2(t, map[string]string{
		"cgroup.subtree_control":                "io\n",
		"paced/cgroup.subtree_control":          "",
		"paced/cgroup.procs":                    "",
		"paced/weir-pace-01234567/cgroup.procs": "7\n",
		"paced/x/cgroup.procs":                  "",
	})
	err := groupOf(t, fs, "/paced/x").Enable("io")
	if err == nil || !strings.Contains(err.Error(), "/paced has processes of its own (1)") {
		t.Error(err)
	}
}

func TestOffers(t *testing.T) {
	fs := v2(t, map[string]string{"x/cgroup.controllers": "io pids\n"})
	for path, want := range map[string]bool{"/x": false, "/": true, "/to-be-made": true} {
		if got := groupOf(t, fs, path).Offers("memory"); got != want {
			t.Errorf("Offers of %s = %t, want %t", path, got, want)
		}
	}
}

func TestWalkVisitsParentsFirst(t *testing.T) {
	fs := v2(t, map[string]string{"a/b/x": "", "a/c/x": "", "d/x": ""})
	seen := map[string]int{}
	if err := groupOf(t, fs, "/").Walk(func(g Group) error {
		seen[g.Path()] = len(seen)
		if !g.IsRoot() && g.Parent().Path() != g.Path() {
			if _, ok := seen[g.Parent().Path()]; !ok {
				t.Errorf("%s before its parent", g.Path())
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 5 {
		t.Errorf("visited %v, want 5 groups", seen)
	}
}
