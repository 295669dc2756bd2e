package pacer

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/process"
)

// idle is a meter of processes that write nothing.
type idle struct{}

func (idle) look(time.Duration, []int) (float64, error) { return 0, nil }
func (idle) joined()                                    {}
func (idle) charged() float64                           { return 0 }
func (idle) on(Job)                                     {}
func (idle) close()                                     {}

// freeze stops the processes in the cell of /a as far as it is frozen, and has others go on.
func (h *fakeHost) freeze(pids ...string) {
	h.t.Helper()
	state, err := os.ReadFile(h.cell("/a") + "/freezer.state")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, text := range pids {
		how, want := unix.SIGCONT, false
		if strings.HasPrefix(string(state), "FROZEN") && slices.Contains(h.in(h.cell("/a")), text) {
			how, want = unix.SIGSTOP, true
		}
		pid, err := strconv.Atoi(text)
		if err != nil {
			h.t.Fatal(err)
		}
		if err := unix.Kill(pid, how); err != nil && err != unix.ESRCH {
			h.t.Fatal(err)
		}
		h.until("it stops, or goes on", func() bool {
			text, err := os.ReadFile("/proc/" + text + "/stat")
			return err != nil || strings.Contains(string(text), ") T ") == want
		})
	}
}

// stopped is a group of processes that are stopped for a debt of a hundred seconds.
func (h *fakeHost) stopped(pids ...string) *paced {
	h.t.Helper()
	s := h.server()
	if err := s.add(h.job()); err != nil {
		h.t.Fatal(err)
	}
	p := s.of(h.job().Limited)
	p.meter, p.bucket.level = idle{}, -100e6
	if err := p.halt(clockNow()); err != nil {
		h.t.Fatal(err)
	}
	h.freeze(pids...)
	if err := p.step(p.next, pace{}); err != nil || !p.settled {
		h.t.Fatalf("%v; it is to be stopped until %s", err, p.next-clockNow())
	}
	return p
}

// Some processes end others, as timeout(1) does: when one has got its signal, what it ends is resumed
// at once, and it goes on to take note of that. No process is moved twice, which can take long.
func TestWhoEndsAnotherGoesOn(t *testing.T) {
	h := newHost(t, cgroupfs.V1)
	parent := exec.Command("perl", "-e", `$p = fork; exec "sleep", 1000 if !$p; $SIG{TERM} = sub { kill 15, $p; waitpid $p, 0; exit 3 }; $| = 1; print "$p\n"; sleep 1 while 1`)
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 20)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	first, second := strconv.Itoa(parent.Process.Pid), strings.TrimSpace(string(line[:n]))
	pid, err := strconv.Atoi(second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) }) // it may have ended
	h.until("the child is what is to end", func() bool {
		name, err := os.ReadFile("/proc/" + second + "/comm")
		return err == nil && string(name) == "sleep\n"
	})
	for _, pid := range []string{first, second} {
		h.put(pid, "/a")
	}
	p := h.stopped(first, second)
	var moves []string
	if err := h.FS.Rehearse(func(file, line string) error {
		if filepath.Base(file) == "cgroup.procs" {
			moves = append(moves, line+" to "+filepath.Base(filepath.Dir(file)))
		}
		return h.write(file, line)
	}); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c := &p.courtesy
	if err := p.step(max(p.due, c.due), pace{}); err != nil || c.whom != parent.Process.Pid {
		t.Fatalf("resumed is %d, %v", c.whom, err)
	}
	h.freeze(first, second)
	h.until("the parent has sent its signal", func() bool {
		s, err := process.SignalsOf(pid)
		return err != nil || s.Ending != 0
	})
	if err := p.step(c.until, pace{}); err != nil || c.whom != pid {
		t.Fatalf("resumed is %d, %v", c.whom, err)
	}
	h.freeze(second)
	h.until("the parent has ended", func() bool {
		s, err := process.SignalsOf(parent.Process.Pid)
		return err != nil || s.Ended
	})
	if want := []string{first + " to a", second + " to a"}; !slices.Equal(moves, want) {
		t.Errorf("the moves are %q, want %q", moves, want)
	}
	for c.whom != 0 {
		if err := p.step(max(clockNow(), p.due), pace{}); err != nil {
			t.Fatal(err)
		}
	}
	var exit *exec.ExitError
	if err := parent.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("the parent has ended with %v", err)
	}
	if len(p.cells.free) != 0 || !p.stopped {
		t.Errorf("afterwards %v are resumed; the group is paused: %t", p.cells.free, p.stopped)
	}
}

// A child that has ended by itself has nobody end: the parent takes note of that, and is paused again.
func TestAChildThatEndsHasNobodyEnd(t *testing.T) {
	h := newHost(t, cgroupfs.V1)
	parent := exec.Command("perl", "-e", `$SIG{CHLD} = sub { wait }; $p = fork; exec "sleep", 1000 if !$p; $| = 1; print "$p\n"; sleep 1 while 1`)
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = parent.Process.Kill()
		_ = parent.Wait()
	})
	line := make([]byte, 20)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(line[:n]))) // it is in no group
	if err != nil {
		t.Fatal(err)
	}
	first := strconv.Itoa(parent.Process.Pid)
	h.put(first, "/a")
	p := h.stopped(first)
	if err := unix.Kill(child, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.until("the parent is to take note of that", func() bool {
		s, err := process.SignalsOf(parent.Process.Pid)
		return err == nil && s.Child != 0
	})
	c := &p.courtesy
	if err := p.step(max(p.due, c.due), pace{}); err != nil || c.whom != parent.Process.Pid || p.stopped {
		t.Fatalf("resumed is %d, %v", c.whom, err)
	}
	h.freeze(first)
	h.until("it has taken note", func() bool {
		s, err := process.SignalsOf(parent.Process.Pid)
		return err == nil && s.Child == 0
	})
	if err := p.step(max(clockNow(), p.due), pace{}); err != nil || c.whom != 0 || !p.stopped {
		t.Fatalf("%v: resumed is %d still", err, c.whom)
	}
	h.freeze(first)
	for range 3 {
		if err := p.step(max(p.due, c.due), pace{}); err != nil || c.whom != 0 || !p.stopped {
			t.Fatalf("%v: resumed is %d once more", err, c.whom)
		}
	}
}

// Who is paused for a loan, or until it is told what the group has written, takes its signals too.
func TestSignalsWhileOthersWait(t *testing.T) {
	for name, wait := range map[string]func(p *paced){
		"loan": func(p *paced) { p.waits = clockNow() + time.Hour },
		"doubt": func(p *paced) {
			p.meter = &written{limited: p.roster.limited, folios: folios{excess: 1e9, late: clockNow() + time.Hour, load: func() (Parts, error) { return nil, errLoading }}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, cgroupfs.V1)
			pid := h.sleeper("/a")
			p := h.stopped(pid)
			wait(p)
			if err := p.halt(clockNow()); err != nil {
				t.Fatal(err)
			}
			if err := p.step(p.next, pace{}); err != nil || p.settled || p.next < clockNow()+time.Minute {
				t.Fatalf("%v; it is to be paused for %s", err, p.next-clockNow())
			}
			number, err := strconv.Atoi(pid)
			if err == nil {
				err = unix.Kill(number, unix.SIGTERM)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := p.step(max(p.due, p.courtesy.due), pace{}); err != nil || p.courtesy.whom != number || p.stopped {
				t.Errorf("resumed is %d, %v", p.courtesy.whom, err)
			}
		})
	}
}

// Many processes are checked more rarely, but not so rarely that a signal waits for long; those of many groups too.
func TestSignalsAfter(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		100 * time.Microsecond: signalEvery,
		500 * time.Microsecond: 50 * time.Millisecond,
		5 * time.Millisecond:   signalLate,
		30 * time.Millisecond:  300 * time.Millisecond,
	} {
		if got := signalsAfter(took); got != want {
			t.Errorf("after a check of %s: in %s, want %s", took, got, want)
		}
	}
	l := loop{look: time.Millisecond, groups: queue{{stopped: true}, {}, {stopped: true}, {stopped: true}}}
	if others := l.pace().others; others != 2*l.look {
		t.Errorf("a look at the other paused groups takes %s", others)
	}
	l.groups = queue{{}}
	if others := l.pace().others; others != 0 {
		t.Errorf("where none is paused: %s", others)
	}

	h := newHost(t, cgroupfs.V1)
	p := h.stopped(h.sleeper("/a"))
	if err := p.attend(max(clockNow(), p.courtesy.due), pace{others: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if in := p.courtesy.due - clockNow(); in < 400*time.Millisecond {
		t.Errorf("among many groups it is checked again in %s", in)
	}
}
