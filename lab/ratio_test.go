package lab

import (
	"testing"
	"time"
)

// verdict stands for a test that Ratio judges.
type verdict struct {
	testing.TB
	failed bool
}

func (v *verdict) Helper()               {}
func (v *verdict) Logf(string, ...any)   {}
func (v *verdict) Errorf(string, ...any) { v.failed = true }

func TestFree(t *testing.T) {
	for _, c := range []struct {
		measured []float64
		failed   bool
		times    int
	}{
		{[]float64{100}, false, 1},
		{[]float64{99, 150}, false, 2},
		{[]float64{99, 99, 99, 99, 99}, true, attempts},
	} {
		v, n := &verdict{TB: t}, 0
		free(v, "without a limit", 100, func() float64 { n++; return c.measured[n-1] }, func() {})
		if v.failed != c.failed || n != c.times {
			t.Errorf("%v: failed %t after %d, want %t after %d", c.measured, v.failed, n, c.failed, c.times)
		}
	}
}

func TestRatio(t *testing.T) {
	const took = 5 * time.Second
	for _, c := range []struct {
		name     string
		measured []float64 // in turn
		starved  bool
		failed   bool
		times    int // measured
	}{
		{"held", []float64{1.0}, false, false, 1},
		{"held on a busy machine", []float64{0.98}, true, false, 1},
		{"too much", []float64{1.04, 1.0}, false, true, 1},
		{"too much on a busy machine", []float64{1.14, 1.0}, true, true, 1},
		{"a stall caught up", []float64{1.06, 1.0}, true, false, 2},
		{"stalls caught up, again and again", []float64{1.06, 1.06, 1.06, 1.06, 1.06}, true, true, attempts},
		{"too little", []float64{0.9, 1.0}, false, true, 1},
		{"too little on a busy machine, then held", []float64{0.9, 1.0}, true, false, 2},
		{"too little on a busy machine, then too much", []float64{0.9, 1.14}, true, true, 2},
		{"too little, again and again", []float64{0.9, 0.9, 0.9, 0.9, 0.9}, true, true, attempts},
	} {
		v, n, quieter := &verdict{TB: t}, 0, 0
		ratio(v, c.name, 100, Direct, func() (float64, float64, time.Duration) {
			n++
			if c.starved {
				return 100 * c.measured[n-1], 2 * starvedMax, took
			}
			return 100 * c.measured[n-1], 0, took
		}, func() { quieter++ })
		if quieter != n-1 {
			t.Errorf("%s: waited for a quieter machine %d times of %d", c.name, quieter, n-1)
		}
		if v.failed != c.failed || n != c.times {
			t.Errorf("%s: failed %t after %d, want %t after %d", c.name, v.failed, n, c.failed, c.times)
		}
	}
}
