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
	"github.com/weir-io/weir/internal/act/escape/watcher"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/linux/partial"
)

// slowly has the helper of these tests load nothing, and slowLoad is how long that takes.
const (
	slowly   = "WEIR_TEST_SLOWLY"
	slowLoad = 2 * time.Second
)

// real are programs of the kernel, as package heavy has them.
var real = Programs{
	Escapes: Kind[escape.Watcher]{
		Load: func(fs *cgroupfs.FS) (Loaded, error) { return watcher.Watch(fs) },
		Take: func(fds []int) (escape.Watcher, error) { return watcher.Taken(fds) },
	},
	Parts: Kind[Parts]{
		Load: func(fs *cgroupfs.FS) (Loaded, error) { return partial.Watch(fs) },
		Take: func(fds []int) (Parts, error) {
			w, err := partial.Taken(fds)
			return parts{w}, err
		},
	},
}

type parts struct{ *partial.Watcher }

func (p parts) Add(g cgroupfs.Group) (Counter, error) { return p.Watcher.Add(g) }

func (p parts) AddEscapes(g cgroupfs.Group, disks func() []blkdev.Number) (Counter, error) {
	return p.Watcher.AddEscapes(g, disks)
}

// loadFor is that helper.
func loadFor(kind string) error {
	socket := int(os.Stdin.Fd())
	if os.Getenv(slowly) != "" {
		time.Sleep(slowLoad)
		return bpf.Send(socket, nil, errors.New(kind+" cannot be had"))
	}
	fs, err := cgroupfs.Open("/")
	if err != nil {
		return err
	}
	defer fs.Close()
	return real.Load(kind, fs, socket)
}

// While programs are loaded, the pacer goes on: nobody waits who does not need them.
func TestNobodyWaitsForPrograms(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	t.Setenv(slowly, "1")
	s := h.server()
	s.escapes = programs[escape.Watcher]{kind: EscapesArg, take: real.Escapes.Take, begin: beginLoad}
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
	if took := time.Since(began); took < slowLoad {
		t.Errorf("who needs them is told after %s, before it is known", took)
	}
	// On a busy machine the pacer of a test is late: it has nobody's real time.
	if most > slowLoad/2 {
		t.Errorf("somebody else waited %s meanwhile", most)
	}
}

// Who asks for what escapes gets an answer when that is there which tells what of it was written.
func TestEscapesAreToldFromTheFirst(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	s := h.server()
	none := errors.New("there is none")
	s.escapes = programs[escape.Watcher]{asked: true, why: none}
	s.partial = programs[Parts]{asked: true, why: errLoading}
	escapes := h.job()
	escapes.Count = CountEscaped
	if err := s.add(escapes); errors.Is(err, errLoading) {
		t.Error("without a watcher nothing is waited for")
	}
	s.escapes.why = nil
	if err := s.add(escapes); !errors.Is(err, errLoading) {
		t.Errorf("before that tells: %v", err)
	}
}

// A pacer without programs ends for one that would have them, and that one has its groups. Until then who
// asks is told what is missing.
func TestProgramsThatAreElsewhere(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	s := h.server()
	missing, there := errors.New("weird is missing"), false
	s.escapes = programs[escape.Watcher]{missing: missing}
	s.elsewhere = func() bool { return there }
	if err := s.add(h.job()); err != nil {
		t.Fatal(err)
	}
	escapes := h.job()
	escapes.Count = CountEscaped
	if a := s.answer(ask{Add: &escapes}); a.Error != missing.Error() || a.later || s.over {
		t.Errorf("%+v, it ends: %v", a, s.over)
	}
	there = true
	if err := s.add(h.job()); err != nil || s.over {
		t.Errorf("%v, it ends: %v for who needs no programs", err, s.over)
	}
	if a := s.answer(ask{Add: &escapes}); !a.later || !s.over {
		t.Errorf("%+v, it ends: %v", a, s.over)
	}
	if err := s.run(t.Context()); err != nil {
		t.Error(err)
	}
	s.thaw()
	s.leaveRecords()
	next := h.server()
	if next.adopt(func(Place) bool { return true }); next.of(h.job().Limited) == nil {
		t.Error("the next pacer does not have the group")
	}
}

// A helper that ends without a word has said nothing of the programs: they are loaded again later.
func TestALostHelper(t *testing.T) {
	begun := 0
	p := programs[Parts]{take: real.Parts.Take, begin: func(string) (*helper, error) {
		if begun++; begun > 1 {
			return nil, errors.New("no process")
		}
		both, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		cmd := exec.Command("true")
		return &helper{cmd, both[0]}, errors.Join(cmd.Start(), unix.Close(both[1]))
	}}
	_, _ = p.get() // it begins
	if !p.attend() {
		t.Error("its end tells nothing")
	}
	for _, want := range []string{"load BPF programs: EOF", "no process", "no process"} {
		if _, err := p.get(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if begun == 1 {
			p.lost -= loadAgain
		}
	}
	if begun != 2 {
		t.Errorf("they were loaded %d times", begun)
	}
	// One that is lost each time is started rarely.
	const passed = time.Hour
	for range int(passed / loadAgain) {
		if _, err := p.get(); err == nil {
			t.Fatal("there are programs")
		}
		p.lost -= loadAgain
	}
	if most := int(passed/loadAgainMost) + 10; begun > most || begun < most-15 {
		t.Errorf("they were loaded %d times in %v, want %d at most", begun, passed, most)
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
		p := programs[Parts]{take: real.Parts.Take, begin: func(string) (*helper, error) { return one, nil }}
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

// A helper hands over what it has loaded, and then ends. The pacer counts with it.
func TestProgramsAreHandedOver(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	fs, err := cgroupfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	if err := escape.Hindrance(fs); err != nil {
		t.Skip("needs a kernel that loads BPF programs, which the helper passes to the pacer: ", err)
	}
	h.Write(cgrouptest.V2Dir+"/a/io.stat", "8:0 rbytes=0 wbytes=0 rios=0 wios=0 dbytes=0 dios=0\n")
	s := h.server()
	s.escapes = programs[escape.Watcher]{kind: EscapesArg, take: real.Escapes.Take, begin: beginLoad}
	c, _ := h.serveBy(s)
	j := h.job()
	j.Count = CountEscaped
	if _, err := c.Add(j); err != nil {
		if strings.Contains(err.Error(), "does not let this process load BPF programs") {
			t.Skip("needs the right to load BPF programs, which the helper passes to the pacer: ", err)
		}
		t.Fatal(err)
	}
	if seen, err := c.Seen(j.Limited); err != nil || !seen.Told {
		t.Errorf("%+v, %v; want that it is told", seen, err)
	}
	h.until("the helper has ended", func() bool {
		helpers, err := exec.Command("pgrep", "-f", "^weir "+EscapesArg+"$").Output()
		return err != nil && len(helpers) == 0
	})
	if err := c.Remove(j.Limited); err != nil {
		t.Error(err)
	}

	p := programs[Parts]{kind: PartialArg, take: real.Parts.Take, begin: beginLoad}
	defer func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}()
	w, err := p.get()
	for files := []unix.PollFd{{}}; errors.Is(err, errLoading); w, err = p.get() {
		if files[0] = p.poll(); pollUntil(clockNow()+time.Second, files) {
			p.attend()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	count, err := w.Add(h.Group("/a"))
	if err != nil {
		t.Fatal(err)
	}
	if spare, err := count.Spare(); err != nil || spare != 0 {
		t.Errorf("%.0f bytes, %v; want none", spare, err)
	}
	if err := count.Close(); err != nil {
		t.Error(err)
	}
	if _, err := count.Spare(); err == nil {
		t.Error("it counts on")
	}
}
