package cgroupfs

import "testing"

// A cell's home, or a group above it, is frozen by its owner: whatever the cell's own file says.
func TestFrozenAbove(t *testing.T) {
	const home, cell = "a", "a/" + cellPrefix + "12345678"
	for _, c := range []struct {
		name       string
		fs         *FS
		is, failed bool
	}{
		{"v2", v2(t, map[string]string{home + "/cgroup.events": "populated 1\nfrozen 1\n", cell + "/cgroup.events": "populated 1\nfrozen 1\n"}), true, false},
		{"v2, the cell alone", v2(t, map[string]string{home + "/cgroup.events": "populated 1\nfrozen 0\n", cell + "/cgroup.events": "populated 1\nfrozen 1\n"}), false, false},
		{"v2, a home that cannot be read", v2(t, map[string]string{cell + "/cgroup.events": "populated 1\nfrozen 1\n"}), false, true},
		{"v1", v1(t, map[string]string{cell + "/freezer.parent_freezing": "1\n"}), true, false},
		{"v1, the cell alone", v1(t, map[string]string{cell + "/freezer.parent_freezing": "0\n", cell + "/freezer.self_freezing": "1\n"}), false, false},
	} {
		if is, err := groupOf(t, c.fs, "/"+cell).FrozenAbove(); is != c.is || (err != nil) != c.failed {
			t.Errorf("%s: %t, %v", c.name, is, err)
		}
	}
}
