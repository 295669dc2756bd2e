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

	"github.com/weir-io/weir/internal/ptytest"
	"github.com/weir-io/weir/lab"
)

// On a terminal a trace is shown while it runs. A key ends it with the report, TERM
// without, and the terminal is as it was.
func TestLiveView(t *testing.T) {
	lab.Need(t, lab.Root, lab.BPF)
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
			master, slave := ptytest.Open(t)
			defer slave.Close()
			if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
				t.Fatal(err)
			}
			before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			var shown messages
			go func() { _, _ = io.Copy(&shown, master) }() // it ends with the master
			cmd := exec.Command("weir", "trace", "--for", "10m")
			cmd.Env = append(os.Environ(), "TERM=xterm")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			lab.Await(t, time.Minute, "the view", func() bool { return shown.has("q ends it") || len(ended) > 0 })
			if len(ended) > 0 {
				t.Fatalf("weir trace: %v\n%s", <-ended, shown.text.String())
			}
			if err := c.end(cmd.Process, master); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil && !errors.As(err, new(*exec.ExitError)) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != c.status {
				t.Errorf("it ended with %d, want %d", got, c.status)
			}
			after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			if *after != *before {
				t.Error("the terminal is not as it was")
			}
			// After the screen from before has come back.
			last := func(text string) bool {
				shown.mu.Lock()
				defer shown.mu.Unlock()
				_, rest, _ := strings.Cut(shown.text.String(), "\x1b[?1049l")
				return strings.Contains(rest, text)
			}
			const report, none = "the whole host · ", "nothing is left"
			lab.Await(t, time.Minute, "the last words", func() bool { return last(report) || last(none) })
			if got := last(report); got != c.report {
				t.Errorf("a report: %v, want %v, in %q", got, c.report, shown.text.String())
			}
		})
	}
}
