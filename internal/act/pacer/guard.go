package pacer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/state"
)

// GuardArg is the argument that runs weir as a guard of the pacer: see Guard. There are two
// guards, so that one is left if the other is killed or stopped together with the pacer.
const GuardArg = "__guard"

const guardsMost = 2

const (
	// beatEvery is how often the pacer tells its guards that it is running.
	beatEvery = 250 * time.Millisecond
	// guardLook is how long a guard waits for that at a time. After stallMost waits without a
	// word it resumes the groups, and after each further one. After each endAfter waits it ends
	// the pacer if that has groups paused, or somebody has stopped it. If groups are on record, it
	// starts another then.
	guardLook = 350 * time.Millisecond
	stallMost = 2
	endAfter  = 9
	// ownMost is how long the lock of a pacer that has ended may stay taken. If it stays taken
	// for longer, another pacer holds the lock and the groups.
	ownMost = 500 * time.Millisecond
	// livedLeast is how long a pacer lives that does not die again at once. After another one a
	// guard waits for againAfter.
	livedLeast = 300 * time.Millisecond
	againAfter = time.Second
)

// A Watch is what a guard can do.
type Watch struct {
	Needed  func() bool                       // whether groups are on record, also those that were never paused
	Stopped func() bool                       // whether somebody has stopped the pacer, by a signal or a debugger
	Own     func() (unlock func(), mine bool) // whether no other pacer has the groups by now
	End     func()                            // ends a pacer that is stopped
	Again   func() error                      // starts another
}

// WatchOf returns what a guard does on this host.
func WatchOf(dir state.Dir) Watch {
	pacer := os.Getppid()
	return Watch{
		Needed: func() bool {
			jobs, _ := Paced(dir) // what cannot be read is nobody's to hold
			return len(jobs) > 0
		},
		Stopped: func() bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pacer))
			return err == nil && os.Getppid() == pacer && isStopped(string(text))
		},
		Own: func() (func(), bool) {
			for began := time.Now(); time.Since(began) < ownMost; time.Sleep(startLook) {
				if lock, err := dir.Own(lockName); err != nil || lock != nil {
					return lock.Unlock, true // after an error nobody can have it
				}
			}
			return nil, false
		},
		End: func() {
			if os.Getppid() == pacer { // it is not another process of that number
				_ = unix.Kill(pacer, unix.SIGKILL)
			}
		},
		Again: Start,
	}
}

// isStopped reads a process's state: it follows the name, which may have any characters (proc_pid_stat(5)).
func isStopped(stat string) bool {
	i := strings.LastIndexByte(stat, ')')
	state := strings.Fields(stat[i+1:])
	return i >= 0 && len(state) > 0 && (state[0] == "T" || state[0] == "t")
}

// Guard runs a guard. It learns from a pipe which groups are paused. When the pipe closes, for
// whatever reason, it resumes them. It starts another pacer if groups are on record: a group that
// is only watched was never paused, and the pipe says nothing of it. If the pacer says nothing for
// a while, the guard resumes the groups too, and ends the pacer later. One that has paused nobody
// may be late: it is ended only if somebody has stopped it.
func Guard(pipe *os.File, w Watch) error {
	held := make(map[string]string)
	fd := int(pipe.Fd()) // which has it block
	look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	buf := make([]byte, 64<<10)
	var text []byte
	began := clockNow()
	for silent, until := 0, began+guardLook; ; {
		// Go's monitor sleeps while this waits, but not during a raw system call (pollUntil).
		if n, err := unix.Poll(look, int(max(0, until-clockNow())/time.Millisecond)+1); n <= 0 {
			if err != nil && err != unix.EINTR {
				break
			}
			if clockNow() < until {
				continue
			}
			until = clockNow() + guardLook
			if silent++; silent >= stallMost {
				_ = thaw(held) // each time: the pacer may have stopped them once more before it stalled
			}
			if silent%endAfter == 0 && (len(held) > 0 || w.Needed() && w.Stopped()) {
				w.End()
			}
			continue
		}
		silent, until = 0, clockNow()+guardLook
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
		text = note(held, append(text, buf[:n]...))
	}
	if len(held) == 0 && !w.Needed() {
		return nil
	}
	unlock, mine := w.Own()
	if !mine {
		return nil
	}
	err := thaw(held)
	unlock()
	if clockNow()-began < livedLeast {
		time.Sleep(againAfter)
		if unlock, mine = w.Own(); !mine {
			return err
		}
		unlock()
	}
	return errors.Join(err, w.Again())
}

// note reads the pacer's lines and returns the unfinished rest. A line has a quoted file, and
// the text that resumes its group. Without that text the group is gone. Without a file the line
// only says that the pacer is running.
func note(held map[string]string, text []byte) (rest []byte) {
	for {
		line, after, whole := strings.Cut(string(text), "\n")
		if !whole {
			return text
		}
		text = []byte(after)
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			continue
		}
		file, err := strconv.Unquote(quoted)
		if err != nil {
			continue
		}
		if held[file] = strings.TrimSpace(line[len(quoted):]); held[file] == "" {
			delete(held, file)
		}
	}
}

func thaw(held map[string]string) error {
	var errs []error
	for file, line := range held {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(line)
			err = errors.Join(err, f.Close())
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// A guard is a guard process, as the pacer sees it.
type guard struct {
	cmd  *exec.Cmd
	pipe int         // nobody waits for a guard that somebody has stopped
	life *os.File    // ends when the guard does
	poll unix.PollFd // its end
}

func newGuard() (*guard, error) {
	failed := func(err error) (*guard, error) { return nil, fmt.Errorf("start the pacer's guard: %w", err) }
	cmd := background.Command(GuardArg)
	life, kept, err := os.Pipe()
	if err != nil {
		return failed(err)
	}
	defer kept.Close()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return failed(errors.Join(os.NewSyscallError("pipe2", err), life.Close()))
	}
	theirs := os.NewFile(uintptr(ends[0]), "pipe")
	defer theirs.Close()
	cmd.Stdin, cmd.Stdout = theirs, kept
	if err = unix.SetNonblock(ends[1], true); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return failed(errors.Join(err, life.Close(), unix.Close(ends[1])))
	}
	return &guard{cmd, ends[1], life, unix.PollFd{Fd: int32(life.Fd())}}, nil // Fd asks the kernel each time
}

// reap forgets a guard that has ended.
func (g *guard) reap() {
	_ = g.life.Close()
	_ = unix.Close(g.pipe)
	_ = g.cmd.Wait() // that it has ended is all there is to know
}

// end ends a guard without letting it resume anything.
func (g *guard) end() {
	_ = g.cmd.Process.Kill() // it may have ended
	g.reap()
}

func (g *guard) say(text string) error {
	if _, err := unix.Write(g.pipe, []byte(text)); err != nil {
		return fmt.Errorf("tell the pacer's guard: %w", err)
	}
	return nil
}

// hold tells the guard about a group before the group is paused for the first time: the file
// that resumes it, and the line to write.
func (g *guard) hold(file, line string) error { return g.say(strconv.Quote(file) + " " + line + "\n") }

// release tells the guard that a group is no longer paused.
func (g *guard) release(file string) error { return g.say(strconv.Quote(file) + "\n") }

// beat tells the guard that the pacer is running. If the guard does not read, its pipe fills up
// in the end.
func (g *guard) beat() { _ = g.say("\n") }
