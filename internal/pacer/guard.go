package pacer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/background"
)

// GuardArg makes weir the guard of the pacer, and nothing else: see Guard.
const GuardArg = "__guard"

// Guard is the guard's whole life: it learns from a pipe which groups are stopped, and
// when the pipe ends, however the pacer does, lets them go on. again starts another pacer
// for them.
func Guard(pipe io.Reader, again func() error) error {
	held := make(map[string]string)
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		file, line, kept := strings.Cut(lines.Text(), "\t")
		if held[file] = line; !kept {
			delete(held, file)
		}
	}
	var errs []error
	for file, line := range held {
		if err := os.WriteFile(file, []byte(line), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if len(held) > 0 {
		errs = append(errs, again())
	}
	return errors.Join(errs...)
}

// A guard is the guard process, as the pacer has it.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
	life *os.File    // ends when the guard does
	poll unix.PollFd // its end
}

func newGuard() (*guard, error) {
	cmd := background.Command(GuardArg)
	life, kept, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the pacer's guard: %w", err)
	}
	defer kept.Close()
	cmd.Stdout = kept
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = life.Close()
		return nil, fmt.Errorf("start the pacer's guard: %w", err)
	}
	return &guard{cmd, pipe, life, unix.PollFd{Fd: int32(life.Fd())}}, nil // Fd asks the kernel each time
}

// reap forgets a guard that has ended.
func (g *guard) reap() {
	_ = g.life.Close()
	_ = g.cmd.Wait() // that it has ended is all there is to know
}

// hold tells the guard of a group, before it is stopped for the first time: the file that
// lets it go on, and the line for it.
func (g *guard) hold(file, line string) error {
	_, err := fmt.Fprintf(g.pipe, "%s\t%s\n", file, line)
	return err
}

// release tells it that a group is not stopped any more.
func (g *guard) release(file string) error {
	_, err := fmt.Fprintf(g.pipe, "%s\n", file)
	return err
}
