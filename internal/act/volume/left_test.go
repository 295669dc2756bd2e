package volume

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// The mount of a volume is found where it is by now, and only that is unmounted.
func TestMovedMount(t *testing.T) {
	s, m := newStore(t, cgroupfs.V2)
	_, _, err := s.Create(t.Context(), spec("data"))
	must(t, err)
	moved := filepath.Join(m.dir, "elsewhere")
	m.loops[firstLoop].at = moved
	m.show()
	tries := 0
	m.refuse = func(what string) error {
		if what == "unmount" {
			if tries++; tries < 3 {
				return errMoved
			}
		}
		return nil
	}
	if v, err := s.Down(t.Context(), "data"); err != nil || tries != 3 || len(m.loops) != 0 {
		t.Errorf("%+v, %v after %d tries", v, err, tries)
	}
	_, _, err = s.Up(t.Context(), "data", false)
	must(t, err)
	tries = -1000
	if _, err := s.Down(t.Context(), "data"); !errors.Is(err, errMoved) || m.loops[firstLoop].at == "" {
		t.Errorf("one that never stands still: %v", err)
	}
	m.refuse = func(what string) error {
		if what == "unmount" {
			return unix.EBUSY
		}
		return nil
	}
	if _, err := s.Down(t.Context(), "data"); !errors.Is(err, unix.EBUSY) || m.loops[firstLoop].at == "" {
		t.Errorf("one in use: %v", err)
	}
	m.refuse = func(what string) error {
		if what == "remove" {
			return unix.EBUSY
		}
		return nil
	}
	var busy *BusyError
	if _, err := s.Down(t.Context(), "data"); !errors.As(err, &busy) || m.loops[firstLoop].at == "" {
		t.Errorf("mounted where weir does not see it: %v; it is at %q", err, m.loops[firstLoop].at)
	}
}

// The next weir takes to its end what a killed one left: a half-made volume, a half-deleted one,
// a device without a mount.
func TestSweep(t *testing.T) {
	s, m := newStore(t, cgroupfs.V2)
	must(t, s.Sweep()) // of nothing
	half, _, err := s.Create(t.Context(), spec("half"))
	must(t, err)
	must(t, s.turn(half, ready, making))
	gone, _, err := s.Create(t.Context(), spec("gone"))
	must(t, err)
	_, err = s.Down(t.Context(), "gone")
	must(t, err)
	must(t, s.turn(gone, ready, deleting))
	must(t, os.WriteFile(s.path("x", draft), nil, 0o600))
	record, err := s.State.New(loopKind, 300)
	must(t, err)
	must(t, record.Leave())
	m.loops[300] = &loop{}
	inUse, err := s.State.New(loopKind, 301)
	must(t, err)
	must(t, inUse.Leave())
	m.loops[301] = &loop{file: "/x"}
	if _, _, err := s.Create(t.Context(), Spec{What: "half", Size: 16 << 20, FS: "ext4"}); err != nil {
		t.Errorf("made anew: %v", err)
	}
	unlock, err := s.lock(t.Context())
	must(t, err)
	must(t, s.Sweep()) // somebody is at work
	unlock()
	must(t, s.Sweep())
	if m.left(s, "gone") == nil || m.loops[300] != nil || m.loops[301] == nil {
		t.Errorf("devices are %v", m.loops)
	}
	for _, path := range []string{s.path("gone", deleting), gone.Image, s.path("half", making), s.path("x", draft)} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
}
