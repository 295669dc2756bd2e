package small

import (
	"testing"

	"github.com/weir-io/weir/lab/internal/machine"
)

func TestDisksFit(t *testing.T) {
	n := 2 // job and out
	for _, set := range testDisks {
		n += set.Number
	}
	if n > machine.DisksMax {
		t.Errorf("%d disks", n)
	}
}
