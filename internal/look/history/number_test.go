package history

import (
	"math"
	"testing"
)

// A value is exact as long as it is small, and then within 0.1 %; and a larger one is not smaller.
func TestPack(t *testing.T) {
	last := uint64(0)
	for v := uint64(0); v < 1<<39; v += 1 + v/777 {
		p := pack(v)
		got := unpack(p)
		if p > packedMost || v < 512 && got != v || math.Abs(float64(got)-float64(v)) > float64(v)/1000 || got < last {
			t.Fatalf("%d is kept as %d (%d)", v, got, p)
		}
		last = got
	}
	for _, v := range []uint64{1 << 40, 1 << 41, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
		if got := unpack(pack(v)); pack(v) > packedMost || got < 1<<39 {
			t.Errorf("%d is kept as %d", v, got)
		}
	}
	for p := range uint64(packedMost + 1) {
		if again := pack(unpack(p)); again != p {
			t.Fatalf("%d becomes %d", p, again)
		}
	}
}
