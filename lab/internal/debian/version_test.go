package debian

import "testing"

// The order is dpkg's: dpkg --compare-versions agrees with each neighbouring pair.
func TestCompare(t *testing.T) {
	ascending := []string{
		"0~~", "0~", "0", "0.0~rc1", "0.0", "1.0~beta1~svc1", "1.0~beta1", "1.0", "1.0-1~bpo12+1",
		"1.0-1", "1.0-1+deb12u1", "1.0-1.1", "1.0a", "1.0+b1", "1.2", "1.10", "5.10.244-1",
		"6.1.158-1", "6.12.9-1", "6.12.57-1~bpo12+1", "6.12.57-1", "7.2~rc3-1~exp1", "7.2.1-1",
		"7.10.1-1", "1:0.1", "2:0", "10:0",
	}
	for i, low := range ascending {
		for j, high := range ascending {
			want := sign(i - j)
			if got := sign(Compare(low, high)); got != want {
				t.Errorf("Compare(%q, %q) = %d, want %d", low, high, got, want)
			}
		}
	}
	for _, same := range [][2]string{{"1.0", "0:1.0"}, {"1.0", "1.0-0"}, {"1.01", "1.1"}, {"", ""}} {
		if got := Compare(same[0], same[1]); got != 0 {
			t.Errorf("Compare(%q, %q) = %d, want 0", same[0], same[1], got)
		}
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func FuzzCompare(f *testing.F) {
	f.Add("1:2.3~rc1-4+b1", "1:2.3-4")
	f.Fuzz(func(t *testing.T, a, b string) {
		if Compare(a, b) != -Compare(b, a) && sign(Compare(a, b)) != -sign(Compare(b, a)) {
			t.Errorf("%q and %q: order depends on side", a, b)
		}
		if Compare(a, a) != 0 {
			t.Errorf("%q is not itself", a)
		}
	})
}
