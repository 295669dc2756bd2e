package pacer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/state"
)

// A pacer that only watches its groups has paused none, and its guards know none. One that is killed
// is replaced if groups are on record, and not else.
func TestGuardOfAPacerThatHasPausedNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root may open the pacer's lock file")
	}
	dir := state.At(t.TempDir())
	w, again := WatchOf(dir), 0
	w.Again = func() error { again++; return nil }
	if err := Guard(pipeOf(t, "\n"), w); err != nil || again != 0 {
		t.Errorf("nothing is on record: started %d times, %v", again, err)
	}
	leftRecord(t, dir)
	if err := Guard(pipeOf(t, "\n"), w); err != nil || again != 1 {
		t.Errorf("a group is on record: started %d times, %v", again, err)
	}
	other, err := dir.Own(lockName)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Unlock()
	if err := Guard(pipeOf(t, "\n"), w); err != nil || again != 1 {
		t.Errorf("another pacer has it: started %d times, %v", again, err)
	}
}

// A pacer that somebody has stopped is ended, whether it has paused a group or not: it keeps the
// lock, so that every weir takes it for one that holds.
func TestGuardEndsAStoppedPacerThatHasPausedNobody(t *testing.T) {
	pipe, pacers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	again := 0
	w := Watch{
		Needed:  func() bool { return true },
		Stopped: func() bool { return true },
		Own:     func() (func(), bool) { return func() {}, true },
		End:     func() { _ = pacers.Close() }, // as the kernel does
		Again:   func() error { again++; return nil },
	}
	done := make(chan error, 1)
	go func() { done <- Guard(pipe, w) }()
	select {
	case err := <-done:
		if err != nil || again != 1 {
			t.Errorf("another one was started %d times, %v", again, err)
		}
	case <-time.After(10 * endAfter * guardLook):
		_ = pacers.Close()
		t.Fatal("it was not ended")
	}
}

// A pacer that has paused nobody and is only late is left alone: it would lose what it has counted.
func TestGuardLeavesALatePacer(t *testing.T) {
	pipe, pacers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	w := Watch{
		Needed:  func() bool { return true },
		Stopped: func() bool { return false },
		Own:     func() (func(), bool) { return nil, false },
		End:     func() { t.Error("it is ended") },
	}
	done := make(chan error, 1)
	go func() { done <- Guard(pipe, w) }()
	time.Sleep((endAfter + 2) * guardLook) // a promise
	_ = pacers.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// After a pacer that has died at once another one is started only after a while, and not if somebody has by then.
func TestGuardOfAPacerThatDiesAtOnce(t *testing.T) {
	asked, again := 0, 0
	w := Watch{
		Needed: func() bool { return true },
		Own:    func() (func(), bool) { asked++; return func() {}, asked == 1 },
		Again:  func() error { again++; return nil },
	}
	began := time.Now()
	if err := Guard(pipeOf(t, "\n"), w); err != nil || again != 0 || asked != 2 || time.Since(began) < againAfter {
		t.Errorf("asked %d times in %v, started %d times: %v", asked, time.Since(began), again, err)
	}
}

func TestIsStopped(t *testing.T) {
	for stat, want := range map[string]bool{"1 (weir) S 0": false, "1 (a) T (b) S 0": false, "1 (weir) T 0": true, "1 (weir) t 0": true, "": false, "1 (weir)": false} {
		if got := isStopped(stat); got != want {
			t.Errorf("%q: %v", stat, got)
		}
	}
}

// leftRecord leaves a record of a group that a pacer has held.
func leftRecord(t *testing.T, dir state.Dir) {
	t.Helper()
	record, err := dir.New(recordKind, Job{Limited: Place{Path: filepath.Join("/", t.Name())}, Count: CountEscaped})
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Leave(); err != nil {
		t.Fatal(err)
	}
}
