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
		rates    []float64 // in turn
		starved  float64
		stalled  time.Duration
		busy     float64
		failed   bool
		attempts int
	}{
		{"held", []float64{1.0}, 0, 0, 0, false, 1},
		{"held on a busy machine", []float64{0.98}, 0.1, 0, 0, false, 1},
		{"too much", []float64{1.04, 1.0}, 0, 0, 0, true, 1},
		{"too much on a busy machine", []float64{1.08, 1.0}, 0.1, 0, 0, true, 1},
		{"a stall caught up", []float64{1.06, 1.0}, 0.1, 0, 0, false, 2},
		{"stalls caught up, again and again", []float64{1.06, 1.06, 1.06, 1.06, 1.06}, 0.1, 0, 0, true, attempts},
		{"after the machine stood still", []float64{1.8, 1.0}, 0.5, 2 * time.Second, 0, false, 2},
		{"after it stood still for less", []float64{1.8, 1.0}, 0.5, time.Second, 0, true, 1},
		{"busy all the time, and too much", []float64{1.3, 1.0}, 0.5, 50 * time.Millisecond, 0, true, 1},
		{"too little", []float64{0.9, 1.0}, 0, 0, 0, true, 1},
		{"too little on a busy machine, then held", []float64{0.9, 1.0}, 0.1, 0, 0, false, 2},
		{"too little on a busy machine, then too much", []float64{0.9, 1.1}, 0.1, 0, 0, true, 2},
		{"too little from a busy disk", []float64{0.8, 1.0}, 0, 0, 0.9, true, 1},
		{"too much from a busy disk", []float64{1.1, 1.0}, 0, 0, 0.9, true, 1},
		{"too little, again and again", []float64{0.9, 0.9, 0.9, 0.9, 0.9}, 0.1, 0, 0, true, attempts},
	} {
		v, n, quieter := &verdict{TB: t}, 0, 0
		ratio(v, c.name, 100, Direct, func() measured {
			n++
			return measured{100 * c.rates[n-1], c.starved, took, c.stalled, c.busy}
		}, func() { quieter++ })
		if quieter != n-1 {
			t.Errorf("%s: waited for a quieter machine %d times of %d", c.name, quieter, n-1)
		}
		if v.failed != c.failed || n != c.attempts {
			t.Errorf("%s: failed %t after %d, want %t after %d", c.name, v.failed, n, c.failed, c.attempts)
		}
	}
}
