package partial

import (
	"testing"
	"time"
	"unsafe"
)

// What the programs write is what is read.
func TestLayout(t *testing.T) {
	spec, err := loadPartial()
	if err != nil {
		t.Fatal(err)
	}
	m := spec.Maps[partialMapGroups]
	if got, want := [2]uintptr{uintptr(m.KeySize), uintptr(m.ValueSize)}, [2]uintptr{8, unsafe.Sizeof(sum{})}; got != want {
		t.Errorf("groups have keys and values of %v bytes, read as %v", got, want)
	}
}

// What is spare in a folio of XFS is paid back by later writes, and no more than once.
func TestSpareIsPaidBack(t *testing.T) {
	const page, folio = 4096, 1 << 20
	var c Count // has counted for long
	for i, step := range []struct {
		now  sum
		want float64
	}{
		{sum{}, 0},
		{sum{Spare: folio - page}, folio - page},      // ext4: the first block
		{sum{Spare: folio - 2*page}, -page},           // and another one
		{sum{Spare: folio - 2*page, Later: folio}, 0}, // XFS, and nothing was spare there
		{sum{Spare: 2*folio - 3*page, Behind: folio - page, Later: folio}, folio - page}, // a block of a folio
		{sum{Spare: 2*folio - 3*page, Behind: folio - page, Later: folio + page}, -page}, // and another one
		{sum{Spare: 2*folio - 3*page, Behind: folio - page, Later: 3 * folio}, -(folio - 2*page)},
		{sum{Spare: 2*folio - 3*page, Behind: folio - page, Later: 4 * folio}, 0},
	} {
		if got := c.take(step.now, time.Now()); got != step.want {
			t.Errorf("step %d: %.0f, want %.0f", i, got, step.want)
		}
	}
}

// What was spare before the counting began may be written at first.
func TestSpareThatIsNotKnown(t *testing.T) {
	const page = 4096
	began := time.Now()
	c := Count{began: began}
	if got := c.take(sum{Later: page}, began.Add(time.Second)); got != -page {
		t.Errorf("%.0f, want one page less", got)
	}
	if got := c.take(sum{Later: 2 * page}, began.Add(2*time.Minute)); got != 0 {
		t.Errorf("%.0f, want 0: nothing is spare", got)
	}
}
