package fullguest

import (
	"slices"
	"testing"

	"github.com/weir-io/weir/lab/environ"
)

// TestCommandNumbersDisks: the agent finds test disks by their place, so the
// system's own must come after them.
func TestCommandNumbersDisks(t *testing.T) {
	m := Machine{root: "/c/root.ext4", kernel: "/c/uml", agent: "/b/agent"}
	disks := []disk{{name: "job", path: "/j", readOnly: true}, {name: "out", path: "/o"}, {name: "ext4-0", path: "/e"}}
	cmd := m.command(t.Context(), disks, "/f", []string{"weir.guest=x"})
	for _, want := range []string{
		"ubd0rc=/j", "ubd1=/o", "ubd2=/e",
		"ubd3c=/f/cow,/c/root.ext4", "root=/dev/ubdd",
		"ubd4rc=/c/uml/modules.ext4", "lab.modules=/dev/ubde",
		"ubd5rc=/b/agent", "lab.agent=/dev/ubdf",
		"weir.guest=x",
	} {
		if !slices.Contains(cmd.Args, want) {
			t.Errorf("no %q in %q", want, cmd.Args)
		}
	}
}

// TestDisksFit: user-mode Linux takes sixteen.
func TestDisksFit(t *testing.T) {
	n := 2 + 3 // job and out; root, modules and agent
	for _, set := range testDisks {
		n += set.number
	}
	if n > 16 {
		t.Errorf("%d disks", n)
	}
}

func TestLayoutKnowsModes(t *testing.T) {
	for _, mode := range []environ.Mode{environ.V1, environ.V2, environ.Hybrid} {
		if words, err := layout(mode); err != nil || len(words) == 0 {
			t.Errorf("%s: %q, %v", mode, words, err)
		}
	}
	if _, err := layout("v3"); err == nil {
		t.Error("v3 is known")
	}
}
