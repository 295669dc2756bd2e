package nri

import (
	"path"
	"slices"
	"strings"
	"testing"
)

func TestPathsOf(t *testing.T) {
	for given, want := range map[string][]string{
		"/kubepods/burstable/podu/c":             {"/kubepods/burstable/podu/c"},
		"kubepods/podu/c":                        {"/kubepods/podu/c"},
		"kubepods-podu_1.slice:cri-containerd:c": {"/kubepods.slice/kubepods-podu_1.slice/cri-containerd-c.scope", "/kubepods-podu_1.slice:cri-containerd:c"},
		":crio:c":                                {"/system.slice/crio-c.scope", "/:crio:c"},
		"a.slice::c":                             {"/a.slice/c.scope", "/a.slice::c"},
		"a.slice:x:c.slice":                      {"/a.slice/c.slice", "/a.slice:x:c.slice"},
		"../a.slice:x:c":                         {"/../a.slice:x:c"}, // which Hierarchy.Group refuses
		"/system/containerd.service/a.slice:x:c": {"/system/containerd.service/a.slice:x:c"},
		"a.slice:x:":                             {"/a.slice:x:"},
		"":                                       nil,
		"kubelet.slice/kubepods.slice/podu.slice/c":       {"/kubelet.slice/kubepods.slice/podu.slice/c"},
		"a-" + strings.Repeat("b-", 4096) + "c.slice:x:y": nil,
	} {
		if got := pathsOf(given); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

// FuzzPathsOf: whatever a runtime says leads to at most two paths from the root.
func FuzzPathsOf(f *testing.F) {
	for _, s := range []string{"/kubepods/podu/c", "a-b.slice:x:c", ":::", "../..:x:c", "-.slice:x:y", "\x00:\n:\x1b", ".-.slice::0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		all := pathsOf(s)
		if len(all) > 2 {
			t.Errorf("%q", all)
		}
		for _, p := range all {
			if !path.IsAbs(p) || len(p) > 40+len(s)*(len(s)+8) || slices.Contains(strings.Split(path.Dir(p), "/"), "..") && !strings.Contains(s, "..") {
				t.Errorf("%q leads to %q", s, p)
			}
		}
	})
}
