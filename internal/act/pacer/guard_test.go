package pacer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
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
		Needed: func() bool { return true },
		Own:    func() (func(), bool) { return func() {}, true },
		End:    func() { _ = pacers.Close() }, // as the kernel does
		Again:  func() error { again++; return nil },
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

// A pacer says that it runs while it has no group too: else its guards would end it.
func TestBeatWithoutGroups(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	s := h.server()
	pipe, into, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer into.Close()
	s.guards = []*guard{{pipe: int(into.Fd())}}
	defer func() { s.guards = nil }()
	s.beat(clockNow())
	fds := []unix.PollFd{{Fd: int32(pipe.Fd()), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, 0); n != 1 || err != nil {
		t.Errorf("it has said nothing: %d, %v", n, err)
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
