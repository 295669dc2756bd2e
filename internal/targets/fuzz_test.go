package targets

import (
	"path"
	"strings"
	"testing"
)

// FuzzGroup: a group's name is anybody's. An id that is taken from it is part of it, has no
// slash, and is one by which the group is found again.
func FuzzGroup(f *testing.F) {
	id := strings.Repeat("0a", 32)
	for _, group := range []string{"/docker/" + id, "/system.slice/docker-" + id + ".scope", "/a:b:" + id, "/machine.slice/libpod-" + id + ".scope/container", "/kubepods/pod1", "/x-podab_c.slice", "/", "", "//", "/.scope", "/-.scope"} {
		f.Add(group, id)
	}
	f.Fuzz(func(t *testing.T, group, id string) {
		group = path.Clean("/" + group) // as cgroupfs has it
		after := CalledAfter(group)
		if !strings.Contains(path.Base(group), after) {
			t.Errorf("%q is called after %q", group, after)
		}
		if kind, whole, ok := container(strings.Split(strings.Trim(group, "/"), "/")); ok {
			if !IsContainerID(whole) || kind != "docker" && kind != "podman" || !strings.Contains(group, whole) {
				t.Errorf("%q is container %s of %s", group, whole, kind)
			}
		}
		if IsCalledAfter(group, id) && (id == "" || strings.Contains(id, "/") || !strings.Contains(group, id)) {
			t.Errorf("%q is called after %q", group, id)
		}
		if IsPodOf(group, id) && id == "" {
			t.Errorf("%q is the pod of nobody", group)
		}
	})
}
