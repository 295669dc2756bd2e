package pacer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/rawtext"
)

const (
	// askersMost is how many askers are served at once; further ones wait.
	askersMost = 64
	// askMost is the maximum size of a question in bytes.
	askMost = 1 << 20
)

// askers are the connections to the pacer's socket, one question each. Nothing here blocks on
// them.
type askers struct {
	path   string
	fd     int
	file   os.FileInfo // of the socket that fd is
	locked func() bool // whether this pacer has the lock of the socket's directory; nil: it has
	looked time.Duration
	all    []*asker
	spare  *os.File // is closed where there are no files left, for one who asks to end something
}

type asker struct {
	fd    int
	since time.Duration
	text  []byte
	waits *ask   // its question, that cannot be answered yet
	left  []byte // of its answer: what the socket has not taken yet
}

// listen makes the socket, and replaces one that a dead pacer left.
func listen(path string) (*askers, error) {
	a := &askers{path: path, fd: -1}
	if err := a.bind(); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	a.keep()
	return a, nil
}

// bind makes the socket in place of what is there, and closes the one that it had before.
func (a *askers) bind() error {
	if err := os.Remove(a.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: a.path}); err == nil {
		err = unix.Listen(fd, askersMost)
	}
	if err != nil {
		_ = unix.Close(fd)
		return &fs.PathError{Op: "bind", Path: a.path, Err: err}
	}
	file, err := os.Lstat(a.path)
	if err != nil {
		_ = unix.Close(fd)
		return err
	}
	if a.fd >= 0 {
		_ = unix.Close(a.fd)
	}
	a.fd, a.file = fd, file
	return nil
}

// remainEvery is how often the pacer looks whether its socket can be found.
const remainEvery = 500 * time.Millisecond

// remain makes the socket again if somebody has removed its file. No other pacer starts as long as this one
// has the lock, so nobody could set or clear a limit. If a mount has put another directory in the place of the pacer's,
// the path is not the pacer's.
func (a *askers) remain(now time.Duration) {
	if now-a.looked < remainEvery {
		return
	}
	if a.looked = now; !a.there() && (a.locked == nil || a.locked()) {
		_ = a.bind() // else it is tried again
	}
}

// there reports whether the path still is this socket. As long as it is open, no other file has its inode's number.
func (a *askers) there() bool {
	file, err := os.Lstat(a.path)
	return err == nil && os.SameFile(file, a.file)
}

// keep opens a spare file, which is closed when the pacer runs out of descriptors.
func (a *askers) keep() {
	if a.spare == nil {
		a.spare, _ = os.Open(os.DevNull) // else it is tried again
	}
}

func (a *askers) close() {
	if a.spare != nil {
		_ = a.spare.Close()
	}
	for _, c := range a.all {
		_ = unix.Close(c.fd)
	}
	if a.there() { // else it may be another pacer's
		_ = os.Remove(a.path)
	}
	_ = unix.Close(a.fd)
}

// poll appends the descriptors to wait for.
func (a *askers) poll(to []unix.PollFd) []unix.PollFd {
	events := int16(unix.POLLIN)
	if len(a.all) >= askersMost {
		events = 0
	}
	to = append(to, unix.PollFd{Fd: int32(a.fd), Events: events})
	for _, c := range a.all {
		events = unix.POLLIN
		if c.left != nil {
			events = unix.POLLOUT
		}
		to = append(to, unix.PollFd{Fd: int32(c.fd), Events: events})
	}
	return to
}

// hurry drops askers that take too long to ask.
func (a *askers) hurry() {
	if len(a.all) > 0 {
		now := clockNow()
		a.drop(func(c *asker) bool { return now-c.since > startMax })
	}
}

func (a *askers) drop(done func(*asker) bool) {
	a.all = slices.DeleteFunc(a.all, func(c *asker) bool {
		if !done(c) {
			return false
		}
		_ = unix.Close(c.fd)
		a.keep()
		return true
	})
}

// serve answers complete questions and accepts the next asker. ready is what poll appended.
func (a *askers) serve(ready []unix.PollFd, answered func(ask) answer) {
	a.drop(func(c *asker) bool {
		i := slices.IndexFunc(ready[1:], func(f unix.PollFd) bool { return int(f.Fd) == c.fd && f.Revents != 0 })
		return i >= 0 && c.read(answered)
	})
	if ready[0].Revents == 0 {
		return
	}
	fd, _, err := unix.Accept4(a.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if (err == unix.EMFILE || err == unix.ENFILE) && a.spare != nil {
		_ = a.spare.Close()
		a.spare = nil
		fd, _, err = unix.Accept4(a.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	}
	if err == nil {
		a.all = append(a.all, &asker{fd: fd, since: clockNow()})
	}
}

// read reads the available part of a question, and answers once it is complete.
func (c *asker) read(answered func(ask) answer) (done bool) {
	if c.left != nil {
		return c.write()
	}
	buf := make([]byte, 4096)
	n, err := unix.Read(c.fd, buf)
	if err != nil {
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	}
	if c.waits != nil { // it has asked already; its end is all there is to read
		return n == 0
	}
	c.text = append(c.text, buf[:n]...)
	question, _, whole := bytes.Cut(c.text, []byte("\n"))
	if !whole {
		return n == 0 || len(c.text) > askMost
	}
	var q ask
	if rawtext.Unmarshal(question, &q) != nil {
		return true
	}
	return c.answer(q, answered)
}

// answer answers a question, if it can be answered now.
func (c *asker) answer(q ask, answered func(ask) answer) (done bool) {
	a := answered(q)
	if a.later {
		c.waits = &q
		return false
	}
	text, err := rawtext.Marshal(a)
	if err != nil {
		return true
	}
	c.waits, c.left = nil, append(text, '\n')
	return c.write()
}

// write sends what the socket takes of the answer. The rest, of a long one, follows when there is room.
func (c *asker) write() (done bool) {
	n, err := unix.Write(c.fd, c.left)
	if err != nil {
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	}
	c.left = c.left[n:]
	return len(c.left) == 0
}

// again answers those whose questions could not be answered before.
func (a *askers) again(answered func(ask) answer) {
	a.drop(func(c *asker) bool { return c.waits != nil && c.answer(*c.waits, answered) })
}
