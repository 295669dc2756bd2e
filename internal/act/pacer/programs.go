package pacer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// EscapesArg and PartialArg run weir as a helper that loads BPF programs for the pacer: see Programs.Load.
const (
	EscapesArg = "__escapes"
	PartialArg = "__partial"
)

// Programs are the BPF programs that the pacer uses, where it needs them: this package does not link
// the library that loads them. The zero Programs have none.
type Programs struct {
	Missing error // why there are none; may be nil
	// Elsewhere reports whether a pacer that is started now would have them; nil: it would not. This one
	// ends for that one then.
	Elsewhere func() bool
	Escapes   Kind[escape.Watcher]
	Parts     Kind[Parts]
}

// A Kind of programs is loaded by a helper, and taken over from it by the pacer.
type Kind[W io.Closer] struct {
	Load func(*cgroupfs.FS) (Loaded, error)
	Take func(fds []int) (W, error) // they belong to what it returns, or are closed
}

// Loaded is what a helper has loaded.
type Loaded interface {
	Descriptors() ([]int, error)
	Close() error
}

// Load loads the programs of a kind, and hands them over through a socket. To load them takes 50 to
// 95 ms of a processor, in which the pacer could pause and resume nobody.
func (p Programs) Load(kind string, groups *cgroupfs.FS, socket int) error {
	load := p.Parts.Load
	if kind == EscapesArg {
		load = p.Escapes.Load
	}
	all, err := load(groups)
	if err != nil {
		return bpf.Send(socket, nil, err)
	}
	defer all.Close()
	fds, err := all.Descriptors()
	return bpf.Send(socket, fds, err)
}

var errNoPrograms = errors.New("weir's pacer has no BPF programs here")

// errLoading says that programs are not there yet. Who needs them is told when they are.
var errLoading = errors.New("its BPF programs are being loaded")

// programs are BPF programs that the pacer has loaded by a helper.
type programs[W io.Closer] struct {
	kind    string
	take    func(fds []int) (W, error) // nil: there are none, because of missing
	missing error
	begin   func(kind string) (*helper, error) // beginLoad, except in tests
	helper  *helper                            // nil: none is at work
	have    W
	why     error // why they cannot be had; errLoading: not yet
	asked   bool
	// lost is when a helper ended that had said nothing, or could not be started: that is nothing about the
	// programs, and they are loaded again after again, if they are asked for; 0: none has.
	lost, again time.Duration
}

// loadAgain is how soon programs are loaded again at first. Each time that fails, the wait is twice as long,
// up to loadAgainMost: a helper takes a processor for tens of milliseconds.
const (
	loadAgain     = time.Second
	loadAgainMost = time.Minute
)

// lose notes that a helper is lost.
func (p *programs[W]) lose(why error) {
	p.why, p.lost, p.again = why, clockNow(), min(max(loadAgain, 2*p.again), loadAgainMost)
}

// get returns the programs. At first it begins to load them.
func (p *programs[W]) get() (W, error) {
	switch {
	case p.asked && (p.lost == 0 || clockNow()-p.lost < p.again):
	case p.take == nil:
		p.asked, p.why = true, cmp.Or(p.missing, errNoPrograms)
	default:
		p.asked, p.lost, p.why = true, 0, errLoading
		var err error
		if p.helper, err = p.begin(p.kind); err != nil {
			p.lose(err)
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
			p.lose(fmt.Errorf("load BPF programs: %w", err))
		}
		return known
	case why != nil:
		p.why = why
	default:
		have, err := p.take(fds)
		if p.why = err; err == nil {
			p.have = have
		}
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
