package process

import "testing"

// A process that ends is in no group's list for a while before it is a zombie, and has gone nowhere else: what
// it has written is its group's.
func TestEnded(t *testing.T) {
	for line, want := range map[string]bool{
		"4711 (dd) R 42 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0\n": false,
		"4711 (dd) R 42 1 1 0 -1 4194564 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0\n": true, // PF_EXITING
		"4711 (dd) Z 42 1 1 0 -1 4227084 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0\n": true,
		"4711 (dd) Z 42 1 1 0 -1 4227072 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0\n": true,
	} {
		if s, err := parseStat([]byte(line)); err != nil || s.Ended != want {
			t.Errorf("%q: ended %v, %v", line, s.Ended, err)
		}
	}
}
