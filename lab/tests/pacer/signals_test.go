package pacer_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/ptytest"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// An end is how somebody ends a command that pays for one large write.
type end struct {
	signal unix.Signal
	weir   bool // it is sent to weir, not to the command
	timed  bool // the command is in timeout(1), which sends it
	beside bool // another process of the group writes all the time
	typed  bool // Ctrl-C is pressed on weir's terminal
}

func (e end) String() string {
	to := "the command"
	if e.weir {
		to = "weir"
	}
	if e.timed {
		to += " by timeout"
	}
	if e.beside {
		to += " beside another writer"
	}
	if e.typed {
		to = "the terminal"
	}
	return unix.SignalName(e.signal) + " to " + to
}

var ends = []end{{signal: unix.SIGTERM}, {signal: unix.SIGKILL}, {signal: unix.SIGINT}, {signal: unix.SIGINT, weir: true}, {signal: unix.SIGTERM, weir: true}, {signal: unix.SIGTERM, timed: true}, {signal: unix.SIGTERM, beside: true}, {signal: unix.SIGINT, typed: true}}

// A signal reaches a process that is paused for a long debt. A signal that ends the process
// ends it at once.
func TestSignalsReachTheStopped(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Newest, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	bound := stoppedMax(e)
	if e.Lane == "native" {
		bound = 200 * time.Millisecond
	}
	large := 32 // MiB
	if e.Cgroups.IOInV2 {
		large = 8 // the kernel holds back its writeback too, and the file is not gone before that is done
	}
	var worst time.Duration
	late, rounds := 0, lab.Times(t, "WEIR_SIGNALS", 2)
	for i := range rounds {
		how := ends[i%len(ends)]
		took, stopped := ended(t, disk.Dir, large, how)
		lift(t, e, disk)
		for range 4 {
			if stopped {
				break
			}
			t.Logf("%s: the command was through before the pacer saw it; once more", how)
			took, stopped = ended(t, disk.Dir, large, how)
			lift(t, e, disk)
		}
		if !stopped {
			t.Fatalf("%s: it was never stopped for a debt of %d s", how, large)
		}
		worst = max(worst, took)
		within := bound
		if how.beside { // it is released alone, and its parent after it: to move a process takes up to 95 ms
			within += 2 * 95 * time.Millisecond
		}
		if took > within {
			late++
			t.Errorf("%s: ended after %s, want %s at most", how, took, within)
		}
	}
	t.Logf("%d of %d ended within %s, the last of them after %s", rounds-late, rounds, bound, worst)
}

// lift ends the limits of commands that have ended: on v2 what they left in memory would be written
// for as long as it was to take, and nobody can remove the file before.
func lift(t *testing.T, e environ.Environ, disk *lab.TestDisk) {
	t.Helper()
	if !e.Cgroups.IOInV2 {
		return
	}
	for _, group := range lab.WeirGroups(t) {
		// The group may go at any moment.
		if err := os.WriteFile(filepath.Join(group, "io.max"), []byte(disk.Number.String()+" wbps=max"), 0); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			t.Fatal(err)
		}
	}
}

// ended has a command pay for a write of so many MiB, a second for each, before it may write as
// much again; ends it, and returns how long that took. A command of a moment can be through
// before the pacer sees it, and is not stopped.
func ended(t *testing.T, dir string, large int, how end) (took time.Duration, stopped bool) {
	t.Helper()
	const after = 1500 * time.Millisecond
	file := filepath.Join(dir, "f")
	_ = os.Remove(file) // of the last round
	dd := fmt.Sprintf("dd if=/dev/zero of=%s bs=%dM count=2 iflag=fullblock status=none", file, large)
	script := "echo $$ > " + file + ".pid; exec " + dd
	if how.timed {
		script = fmt.Sprintf("date +%%s%%N > %s.pid; exec timeout %.1f %s", file, after.Seconds(), dd)
	}
	if how.beside {
		script = fmt.Sprintf(`B=$(printf %%65536s x)
			(until [ -s %[1]s ]; do :; done; while :; do printf %%s "$B"; done > %[1]s.other) & echo $! $$ > %[1]s.others
			sh -c '%[2]s'; true`, file, script)
	}
	cmd := exec.Command("weir", "run", "--quiet", "--hold", "pacer", "--write", "1MiB/s", "--on", dir, "--", "sh", "-c", script)
	var master *os.File
	if how.typed {
		var terminal *os.File
		master, terminal = ptytest.Open(t)
		defer master.Close()
		defer terminal.Close()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 20*time.Second, "the write", func() bool { return size(file) >= int64(large)<<20 })
	text, err := os.ReadFile(file + ".pid")
	if err != nil {
		t.Fatal(err)
	}
	noted, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	var began time.Time
	switch {
	case how.beside:
		defer func() { _ = cmd.Wait() }()
		return endedBeside(t, file+".others", noted, how.signal), true
	case how.timed:
		began = time.Unix(0, int64(noted)).Add(after)
	default:
		time.Sleep(300 * time.Millisecond) // it has stopped
		pid := noted
		if how.weir {
			pid = cmd.Process.Pid
		}
		stopped = unix.Kill(pid, 0) == nil
		began = time.Now()
		if !how.typed {
			err = unix.Kill(pid, how.signal)
		} else {
			_, err = master.WriteString("\x03")
		}
		stopped = stopped && err == nil
	}
	_ = cmd.Wait() // it ends as the command does
	took = time.Since(began)
	return took, stopped || how.timed && took >= 0
}

// endedBeside ends one process of a group whose others are stopped too, and returns how long that
// takes, with its parent's taking note of it. Then it ends the others.
func endedBeside(t *testing.T, others string, pid int, by unix.Signal) time.Duration {
	t.Helper()
	time.Sleep(300 * time.Millisecond)
	began := time.Now()
	if err := unix.Kill(pid, by); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 20*time.Second, "the command to be gone", func() bool { return unix.Kill(pid, 0) != nil })
	took := time.Since(began)
	text, err := os.ReadFile(others)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(other)
		if err != nil {
			t.Fatal(err)
		}
		send(t, unix.SIGKILL, pid)
	}
	return took
}

// A process that gets a signal every 10 ms, as from a profiler, is still held.
func TestASignalledWriterIsPaced(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.Rates, lab.Once, lab.FS("ext4"))
	beside(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	disk := lab.Disk(t, lab.FS("ext4"))
	const rate, seconds = 10e6, 4
	lab.Ratio(t, "the writer", rate, lab.Band{Low: band(e).Low, High: lab.Written.High}, func() float64 {
		return writes(t, disk.Dir, rate, seconds, fmt.Sprintf("exec env %s=signalled %s %s %d", writer, program, filepath.Join(disk.Dir, "f"), int(rate*seconds)))
	})
}

// writeSignalled writes while it is sent a signal every 10 ms, which it catches.
func writeSignalled(f *os.File, bytes int) error {
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGALRM)
	tick := unix.NsecToTimeval(int64(10 * time.Millisecond))
	if _, err := unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{Interval: tick, Value: tick}); err != nil {
		return err
	}
	for piece := make([]byte, 16384); bytes > 0; bytes -= len(piece) {
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
	return nil
}
