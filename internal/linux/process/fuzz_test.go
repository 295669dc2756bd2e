package process

import (
	"fmt"
	"os"
	"path/filepath"
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

// FuzzStatus: a process's name is in its status, and so are signals: those that end it are among
// those that wait.
func FuzzStatus(f *testing.F) {
	f.Add("Name:\tsleep\nState:\tS (sleeping)\nPPid:\t42\nThreads:\t1\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n")
	f.Add("Name:\tx\\nSigPnd:\\tffffffffffffffff\nThreads:\t-1\nShdPnd:\tzz\n")
	file := filepath.Join(f.TempDir(), "status")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, _, err := signalsIn(file)
		if err != nil || s.Ending&^s.Waiting != 0 || s.Asking&^s.Waiting != 0 {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	})
}
