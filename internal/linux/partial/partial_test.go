package partial

import (
	"testing"
	"time"
	"unsafe"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// What the programs write is what is read.
func TestLayout(t *testing.T) {
	spec, err := loadPartial()
	if err != nil {
		t.Fatal(err)
	}
	m := spec.Maps[partialMapGroups]
	if got, want := [2]uintptr{uintptr(m.KeySize), uintptr(m.ValueSize)}, [2]uintptr{unsafe.Sizeof(key{}), unsafe.Sizeof(sum{})}; got != want {
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

// What is spare in a folio is paid back by a store into a mapping, which makes all of it dirty and
// which nothing else counts.
func TestStoresPayBack(t *testing.T) {
	const page, folio = 4096, 1 << 20
	for began, c := range map[string]*Count{"long ago": {}, "just now": {began: time.Now()}} {
		for i, step := range []struct {
			now  sum
			want float64
		}{
			{sum{Stored: folio}, 0}, // nothing is spare
			{sum{Spare: folio - page, Behind: folio - page, Stored: folio}, folio - page},        // a block
			{sum{Spare: folio - page, Behind: folio - page, Stored: 2 * folio}, -(folio - page)}, // all of it
			{sum{Spare: folio - page, Behind: folio - page, Stored: 3 * folio}, 0},               // once
		} {
			if got := c.take(step.now, time.Now()); got != step.want {
				t.Errorf("%s, step %d: %.0f, want %.0f", began, i, got, step.want)
			}
		}
	}
}

// A store can be into a folio of which a part was written before the counting began.
func TestStoresPayBackWhatWasBefore(t *testing.T) {
	const page, folio = 4096, 1 << 20
	c := Count{began: time.Now()}
	c.Before(2 * folio)
	for i, step := range []struct {
		before float64
		now    sum
		want   float64
	}{
		{0, sum{Stored: folio}, -folio},
		{-page, sum{Stored: folio}, 0}, // of the rest a page is known to be written
		{0, sum{Stored: 3 * folio}, -(folio - page)},
		{-page, sum{Stored: 4 * folio}, 0},
	} {
		c.Before(step.before)
		if got := c.take(step.now, time.Now()); got != step.want {
			t.Errorf("step %d: %.0f, want %.0f", i, got, step.want)
		}
	}
}

// Both kernels' tracepoints of stores have a program.
func TestStoresAreSeen(t *testing.T) {
	spec, err := loadPartial()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range spec.Programs {
		seen[p.SectionName] = true
	}
	for _, name := range []string{"xfs_write_fault", "xfs_filemap_fault"} {
		if !seen["raw_tp/"+name] {
			t.Errorf("no program sees %s", name)
		}
	}
}

// On v1 the groups below one are not its own: their processes are not read for it either.
func TestGroupsBelow(t *testing.T) {
	for version, want := range map[cgroupfs.Version]uint32{cgroupfs.V1: alone, cgroupfs.V2: 0} {
		if got := first(3, version); got.Level != 3 || got.Flags != want {
			t.Errorf("%v: %+v", version, got)
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

// What escapes to several disks is one sum. Stores are seen for the group.
func TestSumOfDisks(t *testing.T) {
	now := sum{Stored: 1}
	for _, disk := range []sum{{Spare: 2, Behind: 3, Later: 4}, {Spare: -1, Behind: 1, Later: 1}} {
		now.add(disk)
	}
	if want := (sum{Spare: 1, Behind: 4, Later: 5, Stored: 1}); now != want {
		t.Errorf("%+v, want %+v", now, want)
	}
	if got := device(blkdev.Number{Major: 8, Minor: 17}); got != 8<<20|17 {
		t.Errorf("8:17 is %#x", got)
	}
}
