package watch_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/ptytest"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// A keeper is a weird run without plans, which tells at its socket what groups do.
type keeper struct {
	dir, socket string
	cmd         *exec.Cmd
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // others are to reach the socket, and be refused there
		t.Fatal(err)
	}
	k := &keeper{dir: dir, socket: filepath.Join(dir, "api", "read.sock")}
	if err := os.WriteFile(filepath.Join(dir, "plans.yaml"), []byte("plans: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.end(t, unix.SIGTERM) })
	return k
}

// start starts it, and waits until it answers.
func (k *keeper) start(t *testing.T) {
	t.Helper()
	k.cmd = exec.Command("weird", "run", "--plans", filepath.Join(k.dir, "plans.yaml"), "--socket", filepath.Join(k.dir, "s"), "--journal", filepath.Join(k.dir, "journal"), "--api", filepath.Join(k.dir, "api"))
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 30*time.Second, "weird to answer", func() bool {
		return exec.Command("weird", "status", "--socket", filepath.Join(k.dir, "s")).Run() == nil
	})
}

func (k *keeper) end(t *testing.T, how unix.Signal) {
	t.Helper()
	if k.cmd == nil {
		return
	}
	_ = k.cmd.Process.Signal(how)
	_ = k.cmd.Process.Signal(unix.SIGCONT)
	_ = k.cmd.Wait()
	k.cmd = nil
}

// weir top has weird's readings where weird runs: while a group reads and writes they are the kernel's, and at
// rest the same as those of a weir top that reads by itself.
func TestTopFollowsWeird(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Newest, lab.NoSystemd, lab.FS("ext4"))
	if e.Lane == "native" { // a guest has v1 too
		lab.Need(t, lab.Long)
	}
	s := makeSubject(t, e, "weir-watch-stream")
	weir(t, "set", "cgroup:"+s.cgroup, "--quiet", "--hold", "kernel", "--read", fmt.Sprint(int(readLimit)), "--write", fmt.Sprint(int(writeLimit)), "--on", s.disk.Node)
	s.run(t, load.Job{Path: load.Direct, Read: true, Block: block, Size: 16 << 20, Pace: reads})
	s.run(t, load.Job{Path: load.Direct, Block: block, Size: 16 << 20, Pace: writes})
	k := newKeeper(t)
	k.start(t)
	lab.Ratio(t, "the worse of what weir top says of reads and writes", 1, lab.Written, func() float64 { return s.asWeirdTells(t, k) })
	s.stop(t)
	kernel := floats(readCounts(t, e, s.dir, s.disk.Number))
	stopped := time.Now()
	theirs, v := topOf(t, s.cgroup, s.disk.Number, time.Second, "--socket", k.socket)
	for theirs.Time.Before(stopped.Add(2 * time.Second)) { // its window has nothing of the loads
		if time.Since(stopped) > lab.Patience(t, 20*time.Second) {
			t.Fatalf("the reading of %s is the newest", theirs.Time)
		}
		theirs, v = topOf(t, s.cgroup, s.disk.Number, time.Second, "--socket", k.socket)
	}
	ours, w := topOf(t, s.cgroup, s.disk.Number, time.Second, "--alone")
	if theirs.Source.From != api.FromWeird || ours.Source.From != api.FromTop || theirs.Watched == 0 {
		t.Errorf("%+v, %+v", theirs.Source, ours.Source)
	}
	if !reflect.DeepEqual(v, w) || !reflect.DeepEqual(v.totals, kernel) {
		t.Errorf("weird says\n%+v, weir top\n%+v, the kernel\n%v", v, w, kernel)
	}
	s.whoMayNotAsk(t, k)
}

// asWeirdTells compares rates of weird's with the kernel's counters, and returns the worse one of the known rates.
func (s *subject) asWeirdTells(t *testing.T, k *keeper) float64 {
	t.Helper()
	for attempt := 1; ; attempt++ {
		var doc api.Top
		var v view
		r := follow(t, s.e, s.dir, s.disk.Number, func() {
			time.Sleep(2 * time.Second) // the window may have begun before it was asked for
			doc, v = topOf(t, s.cgroup, s.disk.Number, time.Second, "--socket", k.socket)
		})
		if t.Failed() {
			return 1
		}
		if doc.Source.From != api.FromWeird {
			t.Errorf("%+v", doc.Source)
			return 1
		}
		over := time.Duration(doc.WindowSeconds * float64(time.Second))
		disturbed := false
		for _, name := range names {
			least, most, err := r.rates(name, doc.Time.Add(-over), doc.Time.Add(-over+50*time.Millisecond), over)
			if err != nil {
				t.Error(err)
				return 1
			}
			t.Logf("%s %.0f, the kernel %.0f to %.0f over %v", name, v.rates[name], least, most, over)
			disturbed = disturbed || most > steady*least
			if v.rates[name] < least*(1-close1) || v.rates[name] > most*(1+close1) {
				t.Errorf("%s is %.0f, by the kernel's counters %.0f to %.0f", name, v.rates[name], least, most)
			}
		}
		if read, write := v.rates["rbps"]/reads, v.rates["wbps"]/writes; !disturbed {
			if diff := read - write; diff*diff > 0 && (read-1)*(read-1) > (write-1)*(write-1) {
				return read
			}
			return write
		}
		if attempt == attempts {
			t.Errorf("the rates were too uneven %d times to tell", attempts)
			return 1
		}
		lab.AwaitQuiet(t)
	}
}

// whoMayNotAsk has another user run weir top: it says who may ask, and reads what that user may read.
func (s *subject) whoMayNotAsk(t *testing.T, k *keeper) {
	t.Helper()
	for _, dir := range []string{k.dir, filepath.Join(k.dir, "api")} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := exec.LookPath("weird")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(k.dir, "weird") // where that user can start it
	if err := os.WriteFile(mine, text, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(mine, "top", "--json", "--socket", k.socket)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"source":{"from":"weir","version":"","why":"only root and users in the groups weir-read and weir can ask weird"}`) {
		t.Errorf("%v: %.600s", err, out)
	}
}

// A shown is a program on a terminal.
type shown struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd

	mu   sync.Mutex
	seen strings.Builder
}

func (s *shown) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.Write(b)
}

// await waits until the terminal shows a text. It is made wider and narrower, so that all is painted anew.
func (s *shown) await(text string) {
	s.t.Helper()
	columns := uint16(120)
	lab.Await(s.t, 40*time.Second, fmt.Sprintf("%q on the terminal", text), func() bool {
		s.mu.Lock()
		s.seen.Reset()
		s.mu.Unlock()
		columns ^= 1
		if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns}); err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(s.seen.String(), text)
	})
}

// A weir top on a terminal goes on when weird is killed, hangs or ends, says so in one line, and has weird's readings
// again when one runs.
func TestTopOutlivesWeird(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.NoSystemd)
	k := newKeeper(t)
	k.start(t)
	master, slave := ptytest.Open(t)
	s := &shown{t: t, master: master, cmd: exec.Command("weird", "top", "--all", "--socket", k.socket)}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	go func() { _, _ = io.Copy(s, master) }()
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	const from, itself = "from weird", "read by weir top itself: "
	s.await(from)
	k.end(t, unix.SIGKILL)
	s.await(itself + "weird does not run")
	k.start(t)
	s.await(from)
	if err := k.cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.await(itself + "weird does not answer")
	if err := k.cmd.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.await(from)
	if _, err := io.WriteString(master, "q"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("weir top ends with %v", err)
		}
	case <-time.After(lab.Patience(t, 10*time.Second)):
		_ = s.cmd.Process.Kill()
		t.Errorf("weir top does not end by a key: %v", <-ended)
	}
}
