package debian

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// killWait is how long a cancelled child may take to die before its pipes are
// closed from this side.
const killWait = 5 * time.Second

// A commandError keeps what a child wrote, since apt's exit status says little.
type commandError struct {
	command string
	output  string
	cause   error
}

func (e *commandError) Error() string {
	text := fmt.Sprintf("%s: %v", e.command, e.cause)
	if e.output != "" {
		text += ": " + e.output
	}
	return text
}

func (e *commandError) Unwrap() error { return e.cause }

// command runs a program in dir with untranslated messages and returns its
// standard output. When ctx ends the program and its children get SIGTERM.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killWait
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		said := strings.TrimSpace(stderr.String())
		return nil, &commandError{command: name + " " + args[len(args)-1], output: said, cause: err}
	}
	return stdout.Bytes(), nil
}
