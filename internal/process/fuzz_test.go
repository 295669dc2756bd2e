package process

import (
	"fmt"
	"testing"
)

// FuzzStat: a program's name is its own, and says nothing of its parent.
func FuzzStat(f *testing.F) {
	f.Add("sleep")
	f.Add(") Z 1 1 (")
	f.Add("a\nb) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20")
	f.Fuzz(func(t *testing.T, name string) {
		line := fmt.Sprintf("4711 (%s) S 42 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0\n", name)
		s, err := parseStat([]byte(line))
		if err != nil || s != (Stat{Parent: 42, Started: 987654}) {
			t.Errorf("%q: %+v, %v", name, s, err)
		}
		_, _ = parseStat([]byte(name)) // must end
	})
}
