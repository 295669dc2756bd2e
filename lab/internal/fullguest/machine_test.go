package fullguest

import (
	"testing"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/machine"
)

func TestDisksFit(t *testing.T) {
	n := 2 + len(system("", "", "")) // job and out
	for _, set := range testDisks {
		n += set.Number
	}
	if n > machine.DisksMax {
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
