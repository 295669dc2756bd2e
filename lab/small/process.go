package small

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// attend runs a guest's process to its end, with its console going to a file and,
// line by line, to log. The guest is killed, with all its children, when the
// context ends, and when this program dies.
func attend(ctx context.Context, cmd *exec.Cmd, console string, log func(string)) (err error) {
	f, err := os.Create(console)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := &lines{file: f, log: log}
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	// The death signal is tied to the thread that starts the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	waitErr := cmd.Wait()
	// UML's processes outlive a kernel that was killed or that crashed.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill what is left: %w", err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return waitErr
}

type lines struct {
	file *os.File
	log  func(string)
	part []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	for {
		line, rest, ok := bytes.Cut(l.part, []byte("\n"))
		if !ok {
			break
		}
		if l.log != nil {
			l.log(strings.TrimRight(string(line), "\r"))
		}
		l.part = rest
	}
	if len(l.part) > 1<<16 {
		l.part = nil
	}
	return l.file.Write(p)
}

// lastWords says what a guest that brought no results was doing: an error with
// the kernel's panic, or the tests that had begun and not ended.
func lastWords(console string) error {
	data, err := os.ReadFile(console)
	if err != nil {
		return err
	}
	return explain(string(data))
}

func explain(console string) error {
	var panicked string
	var open []string
	for line := range strings.Lines(console) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "Kernel panic") && panicked == "" {
			panicked = line
		}
		if name, ok := strings.CutPrefix(line, "=== RUN"); ok {
			open = append(open, strings.TrimSpace(name))
		}
		if _, rest, ok := strings.Cut(line, "--- "); ok {
			open = remove(open, rest)
		}
	}
	switch {
	case panicked != "":
		return errors.New(panicked)
	case len(open) > 0:
		return fmt.Errorf("it was in %s", strings.Join(open, ", "))
	}
	return errors.New("it was in no test: its console tells how far it came")
}

// remove takes the test of "PASS: TestA (0.00s)" off the list.
func remove(open []string, ended string) []string {
	_, rest, _ := strings.Cut(ended, ": ")
	name, _, _ := strings.Cut(rest, " ")
	var left []string
	for _, o := range open {
		if o != name {
			left = append(left, o)
		}
	}
	return left
}
