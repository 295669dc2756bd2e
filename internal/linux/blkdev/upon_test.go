package blkdev

import (
	"reflect"
	"testing"
)

// A device stands on the next one below that is on the list, past those that are not, and past
// partitions; on each once.
func TestUpon(t *testing.T) {
	tr := newTree(t)
	sda, sdb := tr.disk("sda", "8:0"), tr.disk("sdb", "8:16")
	one, two := tr.part(sda, "sda1", "8:1"), tr.part(sda, "sda2", "8:2")
	low := tr.dm("dm-0", "253:0", "low", "mpath-x", one, two)
	tr.dm("dm-1", "253:1", "vg-a", "LVM-a", low)
	crypt := tr.dm("dm-2", "253:2", "crypt", "CRYPT-x", one)
	tr.dm("dm-3", "253:3", "vg-b", "LVM-b", crypt)
	tr.md("md1", "9:1", "raid5", sda, sdb)
	tr.md("md0", "9:0", "raid1", sda, sdb)
	a, b, dm0, dm1, md := Number{8, 0}, Number{8, 16}, Number{253, 0}, Number{253, 1}, Number{9, 0}
	encrypted, inIt, parity := Number{253, 2}, Number{253, 3}, Number{9, 1}
	for name, c := range map[string]struct {
		list []Number
		want Upon
	}{
		"one":                 {[]Number{a}, nil},
		"two disks":           {[]Number{a, b}, Upon{}},
		"a volume":            {[]Number{a, dm0}, Upon{a: {dm0}}},
		"named first":         {[]Number{dm0, a}, Upon{a: {dm0}}},
		"past another volume": {[]Number{dm1, a}, Upon{a: {dm1}}},
		"three":               {[]Number{dm1, a, dm0}, Upon{a: {dm0}, dm0: {dm1}}},
		"two on one":          {[]Number{a, dm1, md}, Upon{a: {dm1, md}}},
		"one on two":          {[]Number{md, a, b}, Upon{a: {md}, b: {md}}},
		"an encrypted one":    {[]Number{a, encrypted}, Upon{}},
		"in an encrypted one": {[]Number{inIt, a, encrypted}, Upon{encrypted: {inIt}}},
		"past encryption":     {[]Number{inIt, a}, Upon{}},
		"with parity":         {[]Number{parity, a, b}, Upon{}},
		"one that is not":     {[]Number{a, {253, 9}}, Upon{}},
	} {
		if got := tr.fs().Upon(t.Context(), c.list); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Each byte counts once, on the uppermost device that it passes.
func TestOwn(t *testing.T) {
	a, b, low, high := Number{8, 0}, Number{8, 16}, Number{253, 0}, Number{253, 1}
	for name, c := range map[string]struct {
		upon  Upon
		total map[Number]uint64
		want  uint64
	}{
		"apart":                   {nil, map[Number]uint64{a: 100, b: 50}, 150},
		"all through a volume":    {Upon{a: {low}}, map[Number]uint64{a: 100, low: 100}, 100},
		"beside it as well":       {Upon{a: {low}}, map[Number]uint64{a: 130, low: 100}, 130},
		"waits above":             {Upon{a: {low}}, map[Number]uint64{a: 20, low: 100}, 100},
		"three, and beside":       {Upon{a: {low}, low: {high}}, map[Number]uint64{a: 150, low: 100, high: 100}, 150},
		"two volumes of one disk": {Upon{a: {low, high}}, map[Number]uint64{a: 150, low: 100, high: 50}, 150},
		"a mirror":                {Upon{a: {low}, b: {low}}, map[Number]uint64{a: 100, b: 100, low: 100}, 100},
	} {
		var got uint64
		for n := range c.total {
			got += c.upon.Own(n, func(n Number) uint64 { return c.total[n] })
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
