package limit

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestParseBytes(t *testing.T) {
	for in, want := range map[string]uint64{
		"10MB/s": 10e6, "10MiB/s": 10 << 20, "10M": 10e6, "10m": 10e6, "500": 500, "500B": 500, "500B/s": 500,
		"1.5GB/s": 15e8, "1kB/s": 1000, "1KB/s": 1000, "4Ki": 4096, "2TiB/s": 2 << 40, "10 MB/s": 10e6,
		".5K": 500, "+7": 7, "0.0015k": 1, "9223372036854775807": math.MaxInt64,
	} {
		r, err := ParseBytes(in)
		if n, ok := r.Number(); err != nil || !ok || n != want {
			t.Errorf("ParseBytes(%q) = %v, %v; want %d", in, r.Kernel(), err, want)
		}
	}
	if r, err := ParseBytes("max"); err != nil || !r.IsUnlimited() {
		t.Errorf("ParseBytes(max) = %v, %v", r, err)
	}
}

func TestParseOps(t *testing.T) {
	for in, want := range map[string]uint64{"500": 500, "1.5k": 1500, "500/s": 500, "500iops": 500, "2kiops": 2000, "2K": 2000, "500 ops/s": 500, "4294967294": math.MaxUint32 - 1} {
		r, err := ParseOps(in)
		if n, ok := r.Number(); err != nil || !ok || n != want {
			t.Errorf("ParseOps(%q) = %v, %v; want %d", in, r.Kernel(), err, want)
		}
	}
}

func TestParseDocker(t *testing.T) {
	for in, want := range map[string]uint64{"1mb": 1 << 20, "1MB": 1 << 20, "1m": 1 << 20, "1MiB": 1 << 20, "512kb": 512 << 10, "1gb": 1 << 30, "100": 100, "100b": 100} {
		r, err := ParseDockerBytes(in)
		if n, ok := r.Number(); err != nil || !ok || n != want {
			t.Errorf("ParseDockerBytes(%q) = %v, %v; want %d", in, r.Kernel(), err, want)
		}
	}
	for _, in := range []string{"1zb", "1mbit", "ib", "-1mb", "0", "1m/s"} {
		if r, err := ParseDockerBytes(in); err == nil {
			t.Errorf("ParseDockerBytes(%q) = %v, want an error", in, r.Kernel())
		}
	}
	if _, err := ParseDockerOps("1k"); err == nil {
		t.Error("ParseDockerOps(1k): want an error")
	}
}

func TestRefusedRatesSayWhyAndShowASpelling(t *testing.T) {
	for _, c := range []struct {
		in, why string
		parse   func(string) (Rate, error)
	}{
		{"-5MB/s", "negative", ParseBytes},
		{"0", "zero", ParseBytes},
		{"0MB/s", "zero", ParseBytes},
		{"0.1", "at least 1", ParseBytes},
		{"10Mb/s", "bits", ParseBytes},
		{"10mbit", "bits", ParseBytes},
		{"10Mbps", "bits", ParseBytes},
		{"10kb", "bits", ParseBytes},
		{"10XB/s", "unknown suffix", ParseBytes},
		{"10MBps", "unknown suffix", ParseBytes},
		{"10MB/min", "unknown suffix", ParseBytes},
		{"9223372036854775808", "too large", ParseBytes},
		{"99999999999TB/s", "too large", ParseBytes},
		{strings.Repeat("9", 10000), "too large", ParseBytes},
		{"", "not a rate", ParseBytes},
		{"MB/s", "not a rate", ParseBytes},
		{"1e6", "unknown suffix", ParseBytes},
		{"1,5MB", "unknown suffix", ParseBytes},
		{"-1", "negative", ParseOps},
		{"0", "zero", ParseOps},
		{"10MB/s", "unknown suffix", ParseOps},
		{"1Ki", "unknown suffix", ParseOps},
		{"500i", "unknown suffix", ParseOps},
		{"4294967295", "too large", ParseOps},
	} {
		_, err := c.parse(c.in)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), "write ") {
			t.Errorf("parse %.20q: error %v; want %q and a right spelling", c.in, err, c.why)
		}
	}
}

func TestParseSize(t *testing.T) {
	if n, err := ParseSize("64MiB"); n != 64<<20 || err != nil {
		t.Errorf("ParseSize(64MiB) = %d, %v", n, err)
	}
	for in, why := range map[string]string{
		"max": "not a size", "": "not a size", "0": "a size cannot be zero;", "-1G": "a size cannot be negative",
		"64Mb": "unknown suffix", "64MiB/s": "unknown suffix", "99999999999TB": "too large",
	} {
		_, err := ParseSize(in)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.HasPrefix(err.Error(), "size ") || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "rate") {
			t.Errorf("ParseSize(%q): %v; want an error about a size, with %q", in, err, why)
		}
	}
}

func TestParseCount(t *testing.T) {
	for in, want := range map[string]uint64{"1000": 1000, "1.5k": 1500, "2M": 2000000} {
		if n, err := ParseCount(in); n != want || err != nil {
			t.Errorf("ParseCount(%q) = %d, %v", in, n, err)
		}
	}
	for in, why := range map[string]string{"": "not a count", "0": "a count cannot be zero", "-1": "a count cannot be negative", "1Ki": "unknown suffix", "1B": "unknown suffix"} {
		_, err := ParseCount(in)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.HasPrefix(err.Error(), "count ") || !strings.Contains(err.Error(), why) {
			t.Errorf("ParseCount(%q): %v; want an error about a count, with %q", in, err, why)
		}
	}
}

func TestFormat(t *testing.T) {
	for want, r := range map[string]Rate{
		"10 MB/s": PerSecond(10e6), "1.5 GB/s": PerSecond(15e8), "10 MiB/s": PerSecond(10 << 20), "1 kB/s": PerSecond(1000),
		"1.25 MB/s": PerSecond(125e4), "1234567 B/s": PerSecond(1234567), "1.05 kB/s": PerSecond(1050), "max": Unlimited, "-": {},
	} {
		if got := r.Format(RBPS); got != want {
			t.Errorf("Format(%v) = %q, want %q", r.Kernel(), got, want)
		}
	}
	for want, v := range map[string]float64{"9.93 MB": 9.93e6, "100 MB": 1e8, "12.3 kB": 12345, "0 B": 0, "1.00 GB": 999.9e6} {
		if got := FormatMeasured(v); got != want {
			t.Errorf("FormatMeasured(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestJSONKeepsTheThreeStates(t *testing.T) {
	in := Limit{RBPS: PerSecond(7), WBPS: Unlimited}
	b, err := json.Marshal(in)
	if want := `{"rbps":7,"wbps":"max","riops":null,"wiops":null}`; err != nil || string(b) != want {
		t.Fatalf("Marshal = %s, %v; want %s", b, err, want)
	}
	var out Limit
	if err := json.Unmarshal(b, &out); err != nil || out != in {
		t.Fatalf("Unmarshal = %v, %v; want %v", out, err, in)
	}
}

func TestOverlayKeepsWhatIsNotNamed(t *testing.T) {
	old := Limit{RBPS: PerSecond(1), WBPS: PerSecond(2), RIOPS: Unlimited, WIOPS: PerSecond(4)}
	got := old.Overlay(Limit{WBPS: Unlimited})
	if want := old.With(WBPS, Unlimited); got != want {
		t.Errorf("Overlay = %v, want %v", got, want)
	}
}

// Whatever is accepted prints as something that reads back as the same rate.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"10MB/s", "10MiB/s", "1.5GB/s", "500", "max", "0", "-1", "10Mb/s", "1.05k", "9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range []struct {
			key   Key
			parse func(string) (Rate, error)
		}{{WBPS, ParseBytes}, {WIOPS, ParseOps}} {
			r, err := c.parse(s)
			if err != nil {
				var syntax *SyntaxError
				if !errors.As(err, &syntax) {
					t.Fatalf("parse %q: %v is no *SyntaxError", s, err)
				}
				continue
			}
			if again, err := c.parse(r.Format(c.key)); err != nil || again != r {
				t.Fatalf("%q is %s, which reads back as %v, %v", s, r.Format(c.key), again, err)
			}
			if again, err := ParseKernel(r.Kernel()); err != nil || again != r {
				t.Fatalf("%q is %s to the kernel, which reads back as %v, %v", s, r.Kernel(), again, err)
			}
		}
	})
}
