package health

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// Socket is where the daemon answers if nothing else is asked for.
const Socket = "/run/weir/health.sock"

const (
	// socketMode lets only the owner connect, which takes the right to write (unix(7)).
	socketMode = 0o600
	// groupMode lets a group connect, too.
	groupMode = 0o660
	// dirMode is that of /run/weir, which this package makes if it is missing.
	dirMode = 0o700
	// pathMost is how many bytes the path of a socket may have: sun_path without its last 0.
	pathMost = 107
	// lockMost bounds the wait for another daemon that is just starting or ending.
	lockMost = 2 * time.Second
	// dialMost bounds the question whether anybody answers at a socket.
	dialMost = time.Second
)

// A Listener listens at a socket, and removes it when it is closed.
type Listener struct {
	*net.UnixListener
	path string
	file unix.Stat_t
}

// Listen makes a socket. One that a dead daemon left is replaced. If something else is at the
// path, or if somebody answers there, Listen returns an error and leaves it alone. A path that no
// socket can have is a *fault.Misuse.
func Listen(path string) (*Listener, error) {
	return ListenFor(path, nil)
}

// ListenFor is Listen for a group of users, who can connect besides the owner; nil: none can.
func ListenFor(path string, gid *int) (*Listener, error) {
	if path == "" {
		return nil, fault.Misusef("listen: the path of the socket is empty")
	}
	if n := len(path); n > pathMost {
		return nil, fault.Misusef("listen on %s: the path of a socket has at most %d bytes, and this one has %d", path, pathMost, n)
	}
	if path[0] == '@' {
		path = "./" + path // not Linux's abstract namespace, which has no modes
	}
	if dir := filepath.Dir(path); dir == filepath.Dir(Socket) {
		if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("listen on %s: make its directory: %w", path, reason(err))
		}
	}
	l, err := listen(path)
	if err == nil && gid != nil {
		// The group comes before its right: in between, no other group has it.
		if err = errors.Join(unix.Lchown(path, -1, *gid), unix.Chmod(path, groupMode)); err != nil {
			err = errors.Join(err, l.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, reason(err))
	}
	return l, nil
}

func listen(path string) (*Listener, error) {
	unlock, err := lock(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// The mode of an unbound socket is that of its file (unix_bind in net/unix/af_unix.c, without
	// what the umask takes away): nobody can connect before it is right.
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		var failed error
		err := conn.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), socketMode) })
		return errors.Join(err, failed)
	}}
	made, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	l := &Listener{UnixListener: made.(*net.UnixListener), path: path}
	l.SetUnlinkOnClose(false) // see Close
	if err := unix.Lstat(path, &l.file); err != nil {
		return nil, errors.Join(err, l.UnixListener.Close())
	}
	return l, nil
}

// Accept takes a client, whose address is the user that it runs as.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	return client{conn, userOf(conn)}, nil
}

// A client has its user for an address.
type client struct {
	*net.UnixConn
	user user
}

// RemoteAddr is the user.
func (c client) RemoteAddr() net.Addr { return c.user }

// A user is "uid 1000": what the kernel noted when the client connected (SO_PEERCRED, unix(7)).
type user string

// Network is the kind of address.
func (user) Network() string { return "unix" }

func (u user) String() string { return string(u) }

func userOf(conn *net.UnixConn) user {
	raw, err := conn.SyscallConn()
	if err != nil {
		return "uid unknown"
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil || failed != nil {
		return "uid unknown"
	}
	return user(fmt.Sprintf("uid %d", cred.Uid))
}

// removeStale removes a socket at which nobody answers.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("there is a file of that name, which is no socket; remove it or name another path")
	}
	conn, err := net.DialTimeout("unix", path, dialMost)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was asked
		return errors.New("another process answers there; end it or name another path")
	case !errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("find out whether another process answers there: %w", reason(err))
	}
	return os.Remove(path)
}

// lock keeps other daemons from making or removing a socket in a directory. The kernel takes the
// lock back if this process dies.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockMost); ; time.Sleep(time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("lock its directory: %w", err), f.Close())
		}
	}
}

// Close ends listening. It removes the socket, unless that has been removed or replaced.
func (l *Listener) Close() error {
	err := l.UnixListener.Close()
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	unlock, lockErr := lock(filepath.Dir(l.path))
	if errors.Is(lockErr, fs.ErrNotExist) {
		return err // with its directory
	}
	if lockErr != nil {
		return errors.Join(err, fmt.Errorf("remove %s: %w", l.path, lockErr))
	}
	defer unlock()
	var now unix.Stat_t
	if unix.Lstat(l.path, &now) != nil || now.Dev != l.file.Dev || now.Ino != l.file.Ino {
		return err
	}
	return errors.Join(err, os.Remove(l.path))
}

// reason is the cause of an error without the operation and the path, which the message has.
func reason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return err
}
