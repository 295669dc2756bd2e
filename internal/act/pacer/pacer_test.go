package pacer

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
)

// What is early is paid for to the byte; what is late is made up for to the depth.
func TestBucket(t *testing.T) {
	b := newBucket(1e6, 0)
	b.take(3e6)
	if got := b.until(0); got != 3*time.Second {
		t.Errorf("3 MB at 1 MB/s take %s", got)
	}
	b.fill(2 * time.Second)
	if math.Abs(b.level+1e6) > 1 {
		t.Errorf("after 2 s the level is %.0f, want -1 MB", b.level)
	}
	b.fill(time.Hour)
	if want := 1e6 * depthQuiet.Seconds(); math.Abs(b.level-want) > 1 {
		t.Errorf("after an hour the level is %.0f, want %.0f", b.level, want)
	}
}

// The guard lets go what the pacer held when its pipe ended, and nothing else.
func TestGuard(t *testing.T) {
	dir := t.TempDir()
	held, released := filepath.Join(dir, "held\tand \"quoted\"\n"), filepath.Join(dir, "released")
	for _, file := range []string{held, released} {
		if err := os.WriteFile(file, []byte("FROZEN"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := 0
	mine := true
	w := Watch{
		Needed: func() bool { return false },
		Own:    func() (func(), bool) { return func() {}, mine },
		Again:  func() error { again++; return nil },
	}
	hold := func(file string) string { return strconv.Quote(file) + " THAWED\n" }
	said := hold(held) + hold(released) + strconv.Quote(released) + "\n\n" + hold(filepath.Join(dir, "gone/x"))
	if err := Guard(pipeOf(t, said), w); err != nil {
		t.Error(err)
	}
	for file, want := range map[string]string{held: "THAWED", released: "FROZEN"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", file, got, err, want)
		}
	}
	if again != 1 {
		t.Errorf("another pacer was started %d times", again)
	}
	if err := Guard(pipeOf(t, hold(held)+strconv.Quote(held)+"\n"), w); err != nil || again != 1 {
		t.Errorf("a pacer that had nothing: started %d times, %v", again, err)
	}
}

// A job that cannot be done is refused before anything is started.
func TestAdd(t *testing.T) {
	c := Client{State: state.At(t.TempDir())}
	good := Job{Limited: Place{"blkio", "/a"}, Devices: []blkdev.Number{{Major: 8}}, WBPS: 1}
	for name, j := range map[string]Job{
		"no limit":  {Limited: good.Limited, Devices: good.Devices},
		"no device": {Limited: good.Limited, WBPS: 1},
		"no group":  {Devices: good.Devices, WBPS: 1},
	} {
		if _, err := c.Add(j); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := c.Remove(good.Limited); err != nil {
		t.Errorf("remove without a pacer: %v", err)
	}
}

// Who has just been taken over pays for no long debt, and later for all.
func TestForgive(t *testing.T) {
	p := &paced{bucket: newBucket(1000, 0), let: 0, seen: 0}
	p.lenient = 10 * time.Second
	p.count(5000, time.Second)
	if got := p.bucket.until(0); got != debtMost {
		t.Errorf("a debt of %s, want %s", got, debtMost)
	}
	p.count(5000, 11*time.Second)
	if got := p.bucket.until(0); got < 4*time.Second {
		t.Errorf("later a debt of %s", got)
	}
}

// pipeOf is a pipe that somebody has said something into, and closed.
func pipeOf(t *testing.T, said string) *os.File {
	t.Helper()
	pipe, into, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pipe.Close() })
	if _, err := into.WriteString(said); err != nil {
		t.Fatal(err)
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	return pipe
}

// A guard lets go what a pacer holds that says nothing any more, and leaves alone what
// another pacer has.
func TestGuardOfASilentPacer(t *testing.T) {
	held := filepath.Join(t.TempDir(), "held")
	if err := os.WriteFile(held, []byte("FROZEN"), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, said, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	again := 0
	stop := func() {
		if err := os.WriteFile(held, []byte("FROZEN"), 0o600); err != nil {
			t.Error(err)
		}
	}
	w := Watch{
		Needed: func() bool { return false },
		Own:    func() (func(), bool) { stop(); return nil, false }, // another pacer has it
		End:    func() {},
		Again:  func() error { again++; return nil },
	}
	done := make(chan error, 1)
	go func() { done <- Guard(pipe, w) }()
	if _, err := io.WriteString(said, strconv.Quote(held)+" THAWED\n"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it stops them once more, and says no word of that
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			if text, err := os.ReadFile(held); err == nil && string(text) == "THAWED" {
				break
			}
			if time.Since(began) > 5*time.Second {
				t.Fatal("it is held still")
			}
		}
		stop()
	}
	_ = said.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(held); err != nil || string(text) != "FROZEN" || again != 0 {
		t.Errorf("%q, %v, and another pacer was started %d times", text, err, again)
	}
}

// A pacer that gives up is started again: a sweep had the lock.
func TestAPacerThatGivesUpIsStartedAgain(t *testing.T) {
	starts := 0
	start = func() (*starting, error) {
		if starts++; starts == 1 {
			return nil, nil // it gives up
		}
		return nil, errors.New("started again")
	}
	defer func() { start = begin }()
	if _, err := (Client{State: state.At(t.TempDir())}).ask(ask{}); err == nil || err.Error() != "started again" {
		t.Errorf("%d starts: %v", starts, err)
	}
}

// A pacer that is being killed has its lock for a moment, and nobody answers in its place: who
// sweeps waits for that, and takes its groups over.
func TestASweepWaitsForAPacerThatDies(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root may take over the groups of a pacer that was killed")
	}
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{cgrouptest.V2Dir + "/g/cgroup.procs": ""})
	dir := state.At(t.TempDir())
	record, err := dir.New(recordKind, Job{Limited: Place{Path: "/g"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Leave(); err != nil {
		t.Fatal(err)
	}
	dying, err := dir.Own(lockName)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, dying.Unlock)
	starts := 0
	start = func() (*starting, error) { starts++; return nil, nil }
	defer func() { start = begin }()
	if err := Sweep(dir, h.FS); err != nil || starts != 1 {
		t.Errorf("%d starts: %v", starts, err)
	}
}

// Without a pacer the groups are not held, and a record alone is no reason to say that they are. Who
// only asks starts none.
func TestHolding(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root may open the pacer's lock file")
	}
	dir := state.At(t.TempDir())
	start = func() (*starting, error) {
		t.Error("a pacer was started")
		return nil, nil
	}
	defer func() { start = begin }()
	if jobs, err := Holding(dir); err != nil || len(jobs) != 0 || StandingOf(dir) != Unneeded {
		t.Errorf("nothing is paced: %+v, %v", jobs, err)
	}
	record, err := dir.New(recordKind, Job{Limited: Place{Path: "/g"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Leave(); err != nil {
		t.Fatal(err)
	}
	if jobs, err := Holding(dir); err != nil || len(jobs) != 1 || jobs[0].Lapsed == "" || StandingOf(dir) != Lost {
		t.Errorf("without a pacer: %+v, %v", jobs, err)
	}
	lock, err := dir.Own(lockName)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	if jobs, err := Holding(dir); err != nil || len(jobs) != 1 || jobs[0].Lapsed != "" || StandingOf(dir) != Running {
		t.Errorf("with a pacer: %+v, %v", jobs, err)
	}
}
