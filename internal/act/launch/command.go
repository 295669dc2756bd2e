package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/tally"
)

// A Command is what to run, with the streams it gets.
type Command struct {
	Args           []string
	Stdin          *os.File
	Stdout, Stderr *os.File
	Signals        *Signals      // handed on to it; nil: none are
	Rules          []tally.Rule  // what is measured while it runs; none: nothing
	Watcher        tally.Watcher // sees what goes past the rules; nil: it is worked out
	// Apart leaves the command to init when it has ended. Whoever waits for a process gets what it has
	// written (wait_task_zombie). If weir's pacer holds weir's own group, it would pause that for what the
	// command has written and was held for in its group. (time(1) does not see the command's time then.)
	Apart bool
}

// A Result says how a command ended, and what the kernel charged to its group.
type Result struct {
	Ended   bool // the command ran, and has ended
	Status  int  // as a shell gives it: the exit status, or 128 + the signal
	Elapsed time.Duration
	Stats   []cgroupfs.Stat
	Stops   uint64        // how often it was stopped for what went past its rules
	Tally   *tally.Sum    // what it did under its rules; nil: that was not measured
	Queued  time.Duration // what the throttle needs for writes that are charged already and wait in it (v1)
	Starved bool          // the kernel has killed a process of it for want of memory
	Dirty   *uint64       // bytes that it left in memory to be written, on any disk (v2); nil: not known
}

// A StartError says that the command could not be started, with the exit status
// that a shell gives for it: 127 if it is not found, 126 if it cannot be executed.
type StartError struct {
	Command string
	Status  int
	Err     error
}

func (e *StartError) Error() string { return fmt.Sprintf("run %q: %v", e.Command, e.Err) }

func (e *StartError) Unwrap() error { return e.Err }

// ExitStatus is Status, as fault.Statused has it.
func (e *StartError) ExitStatus() int { return e.Status }

func startError(command string, err error) *StartError {
	e := &StartError{Command: command, Status: 126, Err: err}
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		e.Err = lookup.Err
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		e.Err = path.Err
	}
	switch {
	case errors.Is(err, exec.ErrNotFound) && inPath(command):
		e.Err = fs.ErrPermission
	case errors.Is(err, exec.ErrNotFound):
		e.Status, e.Err = 127, errors.New("no such command")
	case errors.Is(err, fs.ErrNotExist):
		e.Status, e.Err = 127, errors.New("no such command, or its interpreter is missing")
	}
	return e
}

// inPath reports whether a command exists but cannot be executed.
func inPath(command string) bool {
	if strings.Contains(command, "/") {
		return false
	}
	return slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, command))
		return err == nil && info.Mode().IsRegular()
	})
}

// Find looks a command up, as a shell does; the error is a *StartError.
func Find(command string) error {
	_, err := exec.LookPath(command)
	if err == nil || errors.Is(err, exec.ErrDot) {
		return nil
	}
	return startError(command, err)
}

// Run starts the command in the room, waits for it, and reads what the kernel charged to the
// group before anybody removes the group. If the context has ended already, it starts nothing
// and returns the cause.
func (h Host) Run(ctx context.Context, room *Room, c Command) (Result, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	if errors.Is(cmd.Err, exec.ErrDot) {
		cmd.Err = nil // a PATH with "." in it is the user's own choice
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	var signals <-chan os.Signal
	var group *witness
	if c.Signals != nil {
		if onTerminal() {
			var err error
			if group, err = newWitness(h.FS, room.joined); err != nil {
				return Result{}, err
			}
			defer group.dismiss()
		}
		signals = c.Signals.take()
		c.Signals.drain()
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	measured, err := measure(room, c)
	if err != nil {
		return Result{}, err
	}
	above := room.killedAbove()
	began := time.Now()
	if err := start(cmd, h.FS, room.groups()); err != nil {
		_ = measured.end(ctx, ending{}) // nothing was done
		return Result{}, err
	}
	for range len(signals) { // the witness was there before the command
		_ = cmd.Process.Signal(<-signals)
	}
	queued := func() time.Duration { return 0 }
	if room.linger {
		queued = watchQueue(room.IO, began, h.lent(room))
	}
	ended := make(chan error, 1)
	var how ending
	go func() { ended <- how.wait(cmd, !c.Apart) }()
	err = forward(ctx, cmd.Process, signals, group, ended)
	killed := how.known && how.status == 128+int(syscall.SIGKILL)
	result := Result{Starved: room.starved(above, killed), Elapsed: time.Since(began), Tally: measured.end(ctx, how)}
	if left := queued(); left >= queueMin {
		room.queued, result.Queued = left, left
		if result.Tally != nil {
			result.Tally.Queued = left
		}
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return result, fmt.Errorf("wait for %q: %w", c.Args[0], err)
	}
	result.Ended, result.Status = true, how.status
	err = room.read(&result)
	return result, err
}

// read adds what the kernel has charged to a room with limits, and what of that is still in memory.
func (r *Room) read(result *Result) (err error) {
	if !r.limited {
		return nil
	}
	result.Stats, err = r.IO.Stats()
	if err != nil && !cgroupfs.IsGone(err) {
		return fmt.Errorf("read what the command was charged: %w", err)
	}
	if r.IO.Hierarchy().Version == cgroupfs.V2 { // v1's memory is in another group, and of no limit's concern
		if m, there, err := r.IO.Memory(); err == nil && there {
			result.Dirty = &m.Dirty
		}
	}
	return nil
}

// measured is a tally of a room; it may be empty.
type measured struct{ *tally.Tally }

// measure starts to measure what a command does in a room.
func measure(room *Room, c Command) (measured, error) {
	if !room.limited || len(c.Rules) == 0 {
		return measured{}, nil
	}
	t, err := tally.Start(room.IO, c.Rules, c.Watcher, room.pauses)
	return measured{t}, err
}

// end ends the measurement.
func (m measured) end(ctx context.Context, how ending) *tally.Sum {
	if m.Tally == nil {
		return nil
	}
	sum := m.End(ctx, how.written)
	return &sum
}

func status(s *os.ProcessState) int {
	if wait, ok := s.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal())
	}
	return s.ExitCode()
}

// starved reports whether the kernel has OOM-killed a process of the room. systemd removes a
// scope's group once it is empty, which can be before weir reads it; then the groups above tell,
// which count the kills below them too (memory.events), if the command was killed.
func (r *Room) starved(above uint64, killed bool) bool {
	gone := false
	for _, g := range r.joined {
		if g.Hierarchy().Version == cgroupfs.V1 && !g.Hierarchy().Has("memory") {
			continue
		}
		kills, err := g.OOMKills() // a group without the controller tells nothing
		if err == nil && kills > 0 {
			return true
		}
		there, unread := g.Exists()
		gone = gone || err != nil && unread == nil && !there
	}
	return gone && killed && r.killedAbove() > above
}

// killedAbove is how many processes of the groups above the room, and of all that is below
// those, the kernel has OOM-killed. On v1 a group counts its own alone.
func (r *Room) killedAbove() (n uint64) {
	for _, g := range r.joined {
		if g.Hierarchy().Version == cgroupfs.V2 && !g.Parent().IsRoot() {
			kills, _ := g.Parent().OOMKills() // without the controller it tells nothing
			n += kills
		}
	}
	return n
}
