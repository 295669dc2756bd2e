package lab

import "testing"

func TestParseStat(t *testing.T) {
	got, err := parseStat("      10        1       16       2       20        3      800        4        0        5        6\n")
	want := Traffic{Reads: 10, ReadBytes: 8192, Writes: 20, WriteBytes: 409600}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, in := range []string{"", "1 2 3", "a b c d e f g"} {
		if _, err := parseStat(in); err == nil {
			t.Errorf("%q was accepted", in)
		}
	}
}
