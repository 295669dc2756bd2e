package process

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Signals are sets of signals, signal n in bit n-1, as proc_pid_status(5) has them.
type Signals struct {
	Waiting uint64 // that a process or one of its threads would take if it ran
	Ending  uint64 // of these, those that end the process
	Asking  uint64 // of these, those that have it end itself or others, and that it catches or waits for
	Child   uint64 // SIGCHLD, if it catches or waits for that: see Ends
	Ended   bool   // it has, or is ending
	Parent  int    // takes note of its end
}

// harmless are the signals that do not end a process by default (signal(7)).
const harmless = 1<<(unix.SIGCHLD-1) | 1<<(unix.SIGCONT-1) | 1<<(unix.SIGURG-1) | 1<<(unix.SIGWINCH-1) |
	1<<(unix.SIGSTOP-1) | 1<<(unix.SIGTSTP-1) | 1<<(unix.SIGTTIN-1) | 1<<(unix.SIGTTOU-1)

// asking are the signals with which people end a program, and the one with which a timer has a program
// end others (timeout(1)).
const asking = 1<<(unix.SIGHUP-1) | 1<<(unix.SIGINT-1) | 1<<(unix.SIGQUIT-1) | 1<<(unix.SIGTERM-1) |
	1<<(unix.SIGALRM-1)

const childEnded = 1 << (unix.SIGCHLD - 1)

// Ends are the signals of a process while others are being ended: that a child has ended can have it end
// as well. At other times it says nothing of the kind. (A shell gets it after each of its commands.)
func (s Signals) Ends() Signals {
	s.Asking |= s.Child
	s.Waiting |= s.Child
	return s
}

// threadsMost bounds how many threads of a process are asked.
const threadsMost = 64

// SignalsOf reads which signals wait for a process.
func SignalsOf(pid int) (Signals, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	all, threads, err := signalsIn(filepath.Join(dir, "status"))
	if err != nil || threads < 2 {
		return all, err
	}
	entries, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return all, err
	}
	for _, entry := range entries[:min(len(entries), threadsMost)] {
		one, _, err := signalsIn(filepath.Join(dir, "task", entry.Name(), "status"))
		if err == nil { // else it has ended
			all.Waiting |= one.Waiting
			all.Ending |= one.Ending
			all.Asking |= one.Asking
			all.Child |= one.Child
		}
	}
	return all, nil
}

// statusMost is more than a status has; its list of groups comes before the signals.
const statusMost = 16 << 10

// readStatus reads a file as os.ReadFile does, in three system calls instead of fourteen.
func readStatus(file string) ([]byte, error) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: file, Err: err}
	}
	defer unix.Close(fd)
	text := make([]byte, statusMost)
	n, err := unix.Read(fd, text)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: file, Err: err}
	}
	return text[:n], nil
}

func signalsIn(file string) (s Signals, threads int, err error) {
	text, err := readStatus(file)
	if err != nil {
		return s, 0, err
	}
	var pending, blocked, ignored, caught uint64
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":\t"))
		set, _ := strconv.ParseUint(string(value), 16, 64) // other lines are no sets
		switch string(key) {
		case "State":
			s.Ended = bytes.HasPrefix(value, []byte("Z")) || bytes.HasPrefix(value, []byte("X"))
		case "PPid":
			s.Parent, _ = strconv.Atoi(string(value))
		case "Threads":
			threads, _ = strconv.Atoi(string(value))
		case "SigPnd", "ShdPnd":
			pending |= set
		case "SigBlk":
			blocked = set
		case "SigIgn":
			ignored = set
		case "SigCgt":
			caught = set
		}
	}
	take := pending &^ blocked &^ ignored
	s.Ending = take &^ caught &^ harmless
	// One that is blocked may be what the process is about to wait for (sigsuspend, signalfd).
	heard := take&caught | pending&blocked&^ignored
	s.Asking, s.Child = heard&asking, heard&childEnded
	s.Waiting = take | s.Asking
	return s, threads, nil
}
