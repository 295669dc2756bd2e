package trace_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/ptytest"
	"github.com/weir-io/weir/lab"
)

// On a terminal a trace shows its figures while it runs. A key ends it with the report, TERM
// ends it without, and the terminal is restored.
func TestLiveView(t *testing.T) {
	needTraceNatively(t)
	for _, c := range []struct {
		name   string
		end    func(weir *os.Process, keys io.Writer) error
		status int
		report bool
	}{
		{"q", func(_ *os.Process, keys io.Writer) error { _, err := io.WriteString(keys, "q"); return err }, 0, true},
		{"ctrl-c", func(_ *os.Process, keys io.Writer) error { _, err := io.WriteString(keys, "\x03"); return err }, 0, true},
		{"INT", func(weir *os.Process, _ io.Writer) error { return weir.Signal(unix.SIGINT) }, 0, true},
		{"TERM", func(weir *os.Process, _ io.Writer) error { return weir.Signal(unix.SIGTERM) }, 128 + int(unix.SIGTERM), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := startView(t)
			if err := c.end(v.cmd.Process, v.keys); err != nil {
				t.Fatal(err)
			}
			if err := <-v.ended; err != nil && !errors.As(err, new(*exec.ExitError)) {
				t.Fatal(err)
			}
			if got := v.cmd.ProcessState.ExitCode(); got != c.status {
				t.Errorf("it ended with %d, want %d", got, c.status)
			}
			if settings(t, v.terminal) != v.before {
				t.Error("the terminal is not as it was")
			}
			const report, none = "the whole host · ", "nothing is left"
			lab.Await(t, time.Minute, "the last words", func() bool { return v.last(report) || v.last(none) })
			if got := v.last(report); got != c.report {
				t.Errorf("a report: %v, want %v, in %q", got, c.report, v.shown.String())
			}
		})
	}
}

// A view is a trace on a terminal of its own.
type view struct {
	cmd      *exec.Cmd
	keys     io.Writer
	terminal *os.File
	before   unix.Termios // the terminal's settings
	shown    *messages
	ended    chan error
}

func startView(t *testing.T) view {
	t.Helper()
	master, slave := ptytest.Open(t)
	t.Cleanup(func() { slave.Close() })
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	v := view{keys: master, terminal: slave, before: settings(t, slave), shown: &messages{}, ended: make(chan error, 1), cmd: exec.Command("weir", "trace", "--for", "10m")}
	go func() { _, _ = io.Copy(v.shown, master) }() // it ends with the master
	v.cmd.Env = append(os.Environ(), "TERM=xterm")
	v.cmd.Stdin, v.cmd.Stdout, v.cmd.Stderr = slave, slave, slave
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { v.ended <- v.cmd.Wait() }()
	lab.Await(t, time.Minute, "the view", func() bool { return v.shown.has("q ends the trace") || len(v.ended) > 0 })
	if len(v.ended) > 0 {
		t.Fatalf("weir trace: %v\n%s", <-v.ended, v.shown)
	}
	return v
}

func settings(t *testing.T, terminal *os.File) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// last reports whether a text is shown after the screen from before has come back.
func (v view) last(text string) bool {
	_, rest, _ := strings.Cut(v.shown.String(), "\x1b[?1049l")
	return strings.Contains(rest, text)
}
