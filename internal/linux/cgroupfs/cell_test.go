package cgroupfs

import (
	"os"
	"testing"
)

// A brake that somebody else could let go is none.
func TestABrakeIsNobodyElses(t *testing.T) {
	fs := v2(t, map[string]string{"a/cgroup.freeze": "0"})
	g := groupOf(t, fs, "/a")
	for mode, fine := range map[os.FileMode]bool{0o644: true, 0o666: false, 0o664: false} {
		if err := os.Chmod(g.File(freezeFileV2), mode); err != nil {
			t.Fatal(err)
		}
		checkBrake(t, g, fine)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Chmod(g.File(freezeFileV2), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(g.File(freezeFileV2), 1, 0); err != nil {
		t.Fatal(err)
	}
	checkBrake(t, g, false)
}

func checkBrake(t *testing.T, g Group, fine bool) {
	t.Helper()
	b, err := g.Brake()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Check(); (err == nil) != fine {
		t.Errorf("%v, want none: %v", err, fine)
	}
}
