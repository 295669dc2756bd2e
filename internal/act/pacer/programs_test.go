package pacer

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/partial"
)

// loadFor is how long the helper of these tests loads, and what it says then.
const loadFor = 400 * time.Millisecond

// loadSlowly is that helper.
func loadSlowly(kind string) error {
	time.Sleep(loadFor)
	return bpf.Send(int(os.Stdin.Fd()), nil, errors.New(kind+" cannot be had"))
}

// While programs are loaded, the pacer goes on: nobody waits who does not need them.
func TestNobodyWaitsForPrograms(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	s := h.server()
	s.escapes = programs[*escape.Watcher]{kind: EscapesArg, taken: escape.Taken, begin: beginLoad}
	c, _ := h.serveBy(s)
	if _, err := c.Add(h.job()); err != nil {
		t.Fatal(err)
	}
	escapes := h.job()
	escapes.Count = CountEscaped
	told := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := c.Add(escapes)
		told <- err
	}()
	var most time.Duration
	held := true // until the one who waits is answered: the group is to be counted in another way
	for held {
		at := time.Now()
		_, err := c.Seen(h.job().Limited)
		held = err == nil
		most = max(most, time.Since(at))
	}
	if err := <-told; err == nil || !strings.Contains(err.Error(), EscapesArg+" cannot be had") {
		t.Errorf("who needs the programs is told %v", err)
	}
	if took := time.Since(began); took < loadFor {
		t.Errorf("who needs them is told after %s, before it is known", took)
	}
	// On a busy machine the pacer of a test is late: it has nobody's real time.
	if most > loadFor/2 {
		t.Errorf("somebody else waited %s meanwhile", most)
	}
}

// Whatever becomes of the helper, it is known in the end.
func TestHelpers(t *testing.T) {
	ends := func() (*helper, int) {
		both, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return &helper{cmd, both[0]}, both[1]
	}
	for _, c := range []struct {
		name  string
		say   func(socket int) error
		why   string
		knows []bool // at each look
	}{
		{"it ends", func(int) error { return nil }, "load BPF programs: EOF", []bool{true}},
		{"it cannot", func(to int) error { return bpf.Send(to, nil, errors.New("no BPF")) }, "no BPF", []bool{true, false}},
		{"it hands over too little", func(to int) error { return bpf.Send(to, []int{0}, nil) }, "take a BPF program over: 1 descriptors, want at least 2", []bool{true, false}},
	} {
		one, theirs := ends()
		p := programs[*partial.Watcher]{taken: partial.Taken, begin: func(string) (*helper, error) { return one, nil }}
		if _, err := p.get(); !errors.Is(err, errLoading) {
			t.Errorf("%s: at first %v", c.name, err)
		}
		if p.attend() || !p.loading() {
			t.Errorf("%s: it is known before anything was said", c.name)
		}
		if err := errors.Join(c.say(theirs), unix.Close(theirs)); err != nil {
			t.Fatal(err)
		}
		for i, want := range c.knows {
			if got := p.attend(); got != want {
				t.Errorf("%s: look %d: known anew: %v", c.name, i, got)
			}
		}
		if _, err := p.get(); err == nil || err.Error() != c.why || p.helper != nil {
			t.Errorf("%s: %v, want %s; its helper is %v", c.name, err, c.why, p.helper)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
}
