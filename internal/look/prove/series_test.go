package prove

import (
	"math"
	"testing"
	"time"
)

const ms = time.Millisecond

// line is a counter that grows evenly.
func line(perSecond float64, until time.Duration) Series {
	return steps(until, func(at time.Duration) float64 { return perSecond * at.Seconds() })
}

// steps samples a function every 100 ms from 0.
func steps(until time.Duration, total func(time.Duration) float64) Series {
	var s Series
	for at := time.Duration(0); at <= until; at += 100 * ms {
		s = s.add(at, total(at))
	}
	return s
}

func TestSeriesAt(t *testing.T) {
	s := Series{{1 * time.Second, 10}, {2 * time.Second, 20}, {4 * time.Second, 20}}
	for at, want := range map[time.Duration]float64{0: 10, time.Second: 10, 1500 * ms: 15, 2 * time.Second: 20, 3 * time.Second: 20, time.Hour: 20} {
		if got := s.At(at); got != want {
			t.Errorf("At(%s) = %v, want %v", at, got, want)
		}
	}
	if got := (Series{}).At(time.Second); got != 0 {
		t.Errorf("an empty series has %v", got)
	}
	if got := s.add(4*time.Second, 30); len(got) != 3 {
		t.Errorf("a point at the same moment was added: %v", got)
	}
	if got := s.Rates(); len(got) != 2 || got[0] != (Point{2 * time.Second, 10}) || got[1].Total != 0 {
		t.Errorf("Rates = %v", got)
	}
}

// A step of a millisecond is no rate: one request there is not hundreds of megabytes a second.
func TestRatesHaveNoSpikes(t *testing.T) {
	s := line(10*mb, 3*time.Second)
	s = s.add(3*time.Second+ms, 30*mb+256<<10) // the load's end
	rates := s.Rates()
	if len(rates) != 30 || rates[29].At != 3001*ms {
		t.Errorf("%d rates, the last at %s", len(rates), rates[len(rates)-1].At)
	}
	for _, p := range rates {
		if p.Total < 9.9*mb || p.Total > 13*mb {
			t.Errorf("%.1f MB/s at %s", p.Total/mb, p.At)
		}
	}
	var fine Series // a counter that is read each millisecond, and grows by 1 MB each 100 ms
	for at := time.Duration(0); at <= time.Second; at += ms {
		fine = fine.add(at, float64(at/(100*ms))*mb)
	}
	for _, p := range fine.Rates() {
		if p.Total > 12*mb {
			t.Errorf("%.1f MB/s at %s", p.Total/mb, p.At)
		}
	}
	if one := (Series{{0, 0}, {ms, 1000}}).Rates(); len(one) != 1 || one[0].Total != 1e6 {
		t.Errorf("of a single step: %v", one)
	}
}

func TestSpread(t *testing.T) {
	if low, high := Spread(line(100, 3*time.Second), 0, 3*time.Second); math.Abs(low-100) > 1e-9 || math.Abs(high-100) > 1e-9 {
		t.Errorf("of an even series: %v to %v", low, high)
	}
	// Nothing in the second second.
	s := steps(3*time.Second, func(at time.Duration) float64 {
		return 100*min(at, time.Second).Seconds() + 100*max(0, at-2*time.Second).Seconds()
	})
	if low, high := Spread(s, 0, 3*time.Second); math.Abs(low) > 1e-9 || math.Abs(high-100) > 1e-9 {
		t.Errorf("with a pause: %v to %v", low, high)
	}
	if low, high := Spread(s, 0, 0); low != 0 || high != 0 {
		t.Errorf("of nothing: %v to %v", low, high)
	}
}

func TestConfidence(t *testing.T) {
	if half := Confidence(line(100, 3*time.Second), 0, 3*time.Second); half > 1e-6 {
		t.Errorf("of an even series: ±%v", half)
	}
	// Six batches that alternate between 50 and 150: s = 54.77, t(5) = 2.571, n = 6.
	s := Series{{0, 0}}
	for i := range 6 {
		s = s.add(time.Duration(i+1)*500*ms, s[i].Total+[]float64{25, 75}[i%2])
	}
	if half, want := Confidence(s, 0, 3*time.Second), 2.571*54.7723/math.Sqrt(6); math.Abs(half-want) > 0.01 {
		t.Errorf("±%v, want ±%v", half, want)
	}
	if half := Confidence(s, 0, 900*ms); !math.IsInf(half, 1) {
		t.Errorf("of one batch: ±%v", half)
	}
	for degrees, want := range map[int]float64{1: 12.706, 30: 2.042, 60: 2.000, 1000: 1.962} {
		if got := student(degrees); math.Abs(got-want) > 0.003 {
			t.Errorf("student(%d) = %v, want %v", degrees, got, want)
		}
	}
}
