package pacer

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// Whoever starts what is no pacer is told so soon, and leaves nothing behind.
func TestNoPacerIsStarted(t *testing.T) {
	defer func() { start = begin }()
	const again = "; install weir and weird of one build again"
	for script, want := range map[string]string{
		"exit 0":                               "it ended at once (exit status 0)" + again,
		"exit 1":                               "it ended at once (exit status 1)" + again,
		"echo 'weird: no __pacer' >&2; exit 2": "it ended at once (exit status 2): weird: no __pacer" + again,
		"echo 'weir: full\033[2J' >&2; echo more >&2; exit 1": `it ended at once (exit status 1): weir: full\x1b[2J`,
		"kill -9 $$":       "it ended at once (signal: killed); the kernel's log (dmesg) says whether it was killed for lack of memory",
		"kill -SEGV $$":    "it ended at once (signal: segmentation fault)" + again,
		"sleep 1000; exit": "it does nothing" + again,
	} {
		var own *starting
		start = func() (*starting, error) {
			cmd := exec.Command("sh", "-c", script)
			cmd.SysProcAttr = background.Command(PacerArg).SysProcAttr
			var err error
			own, err = started(cmd)
			return own, err
		}
		began := time.Now()
		_, err := (Client{State: state.At(t.TempDir())}).ask(ask{})
		if err == nil || err.Error() != "start the pacer: "+want || fault.ClassOf(err) != fault.NotPossible || !own.over {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
		if took := time.Since(began); took > startMax/2 {
			t.Errorf("%s: that took %v", script, took)
		}
	}
}

// A weird that goes on for long keeps no zombie of a pacer that has ended, although nobody asks any more.
func TestAPacerThatEndsIsReaped(t *testing.T) {
	s, err := started(exec.Command("sh", "-c", "exit 0"))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); unix.Kill(s.process.Pid, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is a zombie")
		}
	}
}

// Where no pacer can be started, a group of a dead one is released all the same, and another stays on record.
func TestRemoveWithoutAPacer(t *testing.T) {
	for name, version := range map[string]cgroupfs.Version{"v1": cgroupfs.V1, "v2": cgroupfs.V2} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, version)
			pid := h.sleeper("/a")
			s := h.server()
			if err := s.add(h.job()); err != nil {
				t.Fatal(err)
			}
			if got := h.in(h.cell("/a")); !slices.Equal(got, []string{pid}) {
				t.Fatalf("in its cell are %q", got)
			}
			other := h.job()
			other.Limited.Path = "/b"
			r, err := h.dir.NewOf(recordKind, other.Limited.String(), other)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Leave(); err != nil {
				t.Fatal(err)
			}
			s.leaveRecords() // as if it were killed
			s.askers.close()
			start = func() (*starting, error) { return nil, &StartError{errors.New("weird is broken")} }
			defer func() { start = begin }()
			if err := (Client{State: h.dir}).Remove(h.job().Limited); err == nil {
				t.Error("a client without groups says that it has released one")
			}
			if err := (Client{State: h.dir, FS: h.FS}).Remove(h.job().Limited); err != nil {
				t.Error(err)
			}
			if got := h.in(h.group("/a")); !slices.Equal(got, []string{pid}) {
				t.Errorf("in the group are %q", got)
			}
			if _, err := os.Stat(h.cell("/a")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its cell is left (%v)", err)
			}
			if jobs, err := Paced(h.dir); err != nil || len(jobs) != 1 || jobs[0].Limited != other.Limited {
				t.Errorf("on record are %+v, %v", jobs, err)
			}
		})
	}
}

// A pacer that takes a question and ends before it answers, each time, is not asked for ever.
func TestRemoveAtAPacerThatNeverAnswers(t *testing.T) {
	t.Parallel() // it takes startMax
	dir := state.At(t.TempDir())
	if err := os.MkdirAll(dir.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir.Path(), socketName))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	began := time.Now()
	err = (Client{State: dir}).Remove(Place{Path: "/a"})
	if took := time.Since(began); err == nil || took > 2*startMax {
		t.Errorf("%v after %v", err, took)
	}
}
