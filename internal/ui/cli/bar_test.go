package cli

import (
	"testing"
	"time"
)

func TestBar(t *testing.T) {
	for share, want := range map[float64]string{-1: "", 0: "", 0.0001: "▏", 0.0625: "▌", 0.5: "████", 0.83: "██████▋", 1: "████████", 7: "████████"} {
		if got := Bar(share, 8); got != want {
			t.Errorf("Bar(%v, 8) = %q, want %q", share, got, want)
		}
	}
}

func TestLatency(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 µs", 860 * time.Nanosecond: "0.9 µs", 9_940: "9.9 µs", 9_950: "10 µs", 31_400: "31 µs", 999_400: "999 µs", 999_500: "1.0 ms",
		9_940 * time.Microsecond: "9.9 ms", 9_950 * time.Microsecond: "10 ms", 350 * time.Millisecond: "350 ms", 1_200 * time.Millisecond: "1.2 s", 121 * time.Second: "2 min 1 s",
	} {
		if got := Latency(d); got != want {
			t.Errorf("Latency(%d ns) = %q, want %q", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1 000", 12480: "12 480", 1234567: "1 234 567"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
