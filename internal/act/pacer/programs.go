package pacer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/partial"
)

// EscapesArg and PartialArg run weir as a helper that loads BPF programs for the pacer: see Load.
const (
	EscapesArg = "__escapes"
	PartialArg = "__partial"
)

// Load loads the programs of package escape or partial, and hands them over through a socket.
// To load them takes 50 to 95 ms of a processor, in which the pacer could pause and resume
// nobody.
func Load(kind string, groups *cgroupfs.FS, socket int) error {
	fds, closer, err := load(kind, groups)
	if closer != nil {
		defer closer.Close()
	}
	return bpf.Send(socket, fds, err)
}

func load(kind string, groups *cgroupfs.FS) (fds []int, all io.Closer, err error) {
	if kind == EscapesArg {
		w, err := escape.Watch(groups)
		if err != nil {
			return nil, nil, err
		}
		fds, err = w.Descriptors()
		return fds, w, err
	}
	w, err := partial.Watch(groups)
	if err != nil {
		return nil, nil, err
	}
	fds, err = w.Descriptors()
	return fds, w, err
}

// errLoading says that programs are not there yet. Who needs them is told when they are.
var errLoading = errors.New("its BPF programs are being loaded")

// programs are BPF programs that the pacer has loaded by a helper.
type programs[W io.Closer] struct {
	kind   string
	taken  func(fds []int) (W, error)
	begin  func(kind string) (*helper, error) // beginLoad, except in tests
	helper *helper                            // nil: none is at work
	have   W
	why    error // why they cannot be had; errLoading: not yet
	asked  bool
}

// get returns the programs. At first it begins to load them.
func (p *programs[W]) get() (W, error) {
	if !p.asked {
		p.asked, p.why = true, errLoading
		if p.helper, p.why = p.begin(p.kind); p.why == nil {
			p.why = errLoading
		}
	}
	return p.have, p.why
}

// usable reports whether they are there.
func (p *programs[W]) usable() bool { return p.asked && p.why == nil }

// loading reports whether they are to come.
func (p *programs[W]) loading() bool { return p.asked && errors.Is(p.why, errLoading) }

// poll is the descriptor to wait for before attend.
func (p *programs[W]) poll() unix.PollFd {
	if p.helper == nil {
		return unix.PollFd{Fd: -1}
	}
	return unix.PollFd{Fd: int32(p.helper.socket), Events: unix.POLLIN}
}

// attend takes what the helper has to say, and reports whether it is known by now whether there
// are programs.
func (p *programs[W]) attend() (known bool) {
	fds, why, err := bpf.Receive(p.helper.socket)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return false
	case err != nil: // it has ended
		p.helper.reap()
		p.helper = nil
		if known = p.loading(); known {
			p.why = fmt.Errorf("load BPF programs: %w", err)
		}
		return known
	case why != nil:
		p.why = why
	default:
		p.have, p.why = p.taken(fds)
	}
	return true
}

func (p *programs[W]) close() error {
	if p.helper != nil {
		_ = p.helper.cmd.Process.Kill() // it may have ended
		p.helper.reap()
	}
	if p.usable() {
		return p.have.Close()
	}
	return nil
}

// A helper is a process that loads programs.
type helper struct {
	cmd    *exec.Cmd
	socket int
}

// beginLoad starts a helper, in about a millisecond. It does not have the pacer's priority.
func beginLoad(kind string) (*helper, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("load BPF programs: %w", os.NewSyscallError("socketpair", err))
	}
	theirs := os.NewFile(uintptr(ends[1]), "socket")
	defer theirs.Close()
	cmd := background.Command(kind)
	cmd.Stdin = theirs
	if err := aside(cmd.Start); err != nil {
		return nil, errors.Join(fmt.Errorf("load BPF programs: %w", err), unix.Close(ends[0]))
	}
	return &helper{cmd, ends[0]}, nil
}

// reap forgets a helper that has ended.
func (h *helper) reap() {
	_ = unix.Close(h.socket)
	_ = h.cmd.Wait() // what it had to say is known
}

// hasLoaded is called when it is known whether there are programs: who waits for them goes on.
func (s *server) hasLoaded() {
	now := clockNow()
	for p := range s.jobs {
		if p.stopped && p.doubts(now) { // what it owes may be much less
			if m, is := p.meter.(*written); !is || !m.ledger.open {
				p.waits = 0
			}
			p.settled = false
			p.plan(now)
		}
	}
	s.orphans.next = now
	for _, w := range s.waiting {
		w.next = now
	}
	s.askers.again(s.answer)
}

// loads reports whether somebody may wait for programs.
func (s *server) loads() bool { return s.escapes.loading() || s.partial.loading() }
