package annotations

import (
	"math"
	"strings"
	"testing"
)

// TestQuantity: the values are those of apimachinery's resource.ParseQuantity (v0.34.0), cut off to
// whole numbers; 0 is what is refused.
func TestQuantity(t *testing.T) {
	for text, want := range map[string]uint64{
		"1": 1, "500": 500, "0500": 500, "+7": 7, "1.": 1, "1.9": 1, "12.5e1": 125,
		"1k": 1e3, "1.5k": 1500, "10M": 10e6, "2G": 2e9, "3T": 3e12, "4P": 4e15, "5E": 5e18,
		"1Ki": 1 << 10, "10Mi": 10 << 20, "1.5Gi": 3 << 29, "2Ti": 2 << 40, "3Pi": 3 << 50, "7Ei": 7 << 60, "0.5Mi": 1 << 19, ".5Ki": 512,
		"1e3": 1000, "1E3": 1000, "1e+3": 1000, "1500e-3": 1, "1500m": 1, "2000000u": 2, "3000000000n": 3, "1.0000000000001": 1,
		"9223372036854775807": math.MaxInt64,

		"": 0, "0": 0, "0Mi": 0, "-1": 0, "-0": 0, "+-1": 0, "--1": 0, "999m": 0, "0.5": 0, ".": 0, "1..2": 0, "1.2.3": 0, "Mi": 0,
		"1K": 0, "1MB": 0, "10MB/s": 0, "1mi": 0, "1Kib": 0, "1 Mi": 0, " 1Mi": 0, "1Mi ": 0, "1e": 0, "1ee3": 0, "1eE3": 0, "1e3k": 0, "1e1.5": 0,
		"max": 0, "none": 0, "0x10": 0, "1_000": 0, "١": 0, "NaN": 0, "Inf": 0, "1e99999999999": 0, "1e65": 0,
		"9223372036854775808": 0, "8Ei": 0, "10E": 0, strings.Repeat("9", 65): 0, strings.Repeat("0", 65) + "1": 0,
	} {
		r, reason := quantity(text, math.MaxInt64)
		if n, _ := r.Number(); n != want || (reason == "") != (want != 0) {
			t.Errorf("%q: %d, %q, want %d", text, n, reason, want)
		}
	}
	if _, reason := quantity("101", 100); reason != "101 is too large: the maximum is 100" {
		t.Error(reason)
	}
}
