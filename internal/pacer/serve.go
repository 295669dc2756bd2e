package pacer

import (
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// recordKind names the records of groups that are paced.
const recordKind = "pace"

const (
	lockName = "pacer.lock"
	// idleMax is how long a pacer stays without a group.
	idleMax = 2 * time.Second
	// sleepMost is how long the pacer sleeps at once: Go cannot do without its thread for longer.
	sleepMost = 100 * time.Millisecond
	// wakeEvery is how often it is woken until it has seen what there is: it may have been about
	// to sleep.
	wakeEvery = 5 * time.Millisecond
)

// A server is the pacer: its groups, and whoever asks.
type server struct {
	dir   state.Dir
	fs    *cgroupfs.FS
	loop  loop
	jobs  map[*paced]*held
	guard *guard
	asks  chan question
	tid   int // of the thread that paces
	note  string
}

// held is what belongs to a paced group.
type held struct {
	job    Job
	record *state.Record
}

type question struct {
	ask    ask
	answer chan answer
}

// Serve is the pacer's whole life. It returns at once if one runs, and when it has had no
// group for a while.
func Serve(ctx context.Context, dir state.Dir, fs *cgroupfs.FS) error {
	lock, err := takeOver(dir)
	if err != nil || lock == nil {
		return err
	}
	defer lock.Close()
	socket := filepath.Join(dir.Path(), socketName)
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("listen: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := errors.Join(leave(fs), turnKey(fs)); err != nil {
		return errors.Join(err, listener.Close())
	}
	s := &server{dir: dir, fs: fs, jobs: make(map[*paced]*held), asks: make(chan question, 1)}
	if err := beExact(); err != nil {
		s.note = err.Error()
	}
	s.tid = unix.Gettid()
	err = s.watch()
	if err == nil {
		err = s.adopt()
	}
	if err == nil {
		go s.accept(listener)
		err = s.run(ctx)
	}
	s.thaw()
	return errors.Join(err, listener.Close(), removeKey(fs))
}

// takeOverMax is how long a pacer that is killed may have its lock after its guard has
// seen its end.
const takeOverMax = time.Second

// takeOver waits for the lock of a pacer that is ending; nil if one goes on.
func takeOver(dir state.Dir) (*os.File, error) {
	for began := time.Now(); ; time.Sleep(startLook) {
		lock, free, err := dir.Lock(lockName)
		if err != nil || free {
			return lock, err
		}
		if time.Since(began) > takeOverMax {
			return nil, nil
		}
	}
}

// leave takes the pacer, and with it its guard, out of the groups of whoever has started it:
// it must not stop itself, nor end with them, nor share their limits.
func leave(fs *cgroupfs.FS) error {
	for _, h := range fs.Hierarchies() {
		if own, err := fs.OfProcess(h, 0); err != nil || own.IsRoot() {
			continue
		}
		if err := h.Root().AddProcess(os.Getpid()); err != nil {
			return fmt.Errorf("leave the groups of the caller: %w", err)
		}
	}
	return nil
}

// watch starts a guard, and tells it of all groups.
func (s *server) watch() error {
	var err error
	if s.guard, err = newGuard(); err != nil {
		return err
	}
	go s.wakeAtEnd(s.guard)
	for p := range s.jobs {
		if err := s.tell(p); err != nil {
			return err
		}
	}
	return nil
}

// wakeAtEnd has the loop see that its guard has ended.
func (s *server) wakeAtEnd(g *guard) {
	<-g.ended
	for {
		select {
		case <-g.seen:
			return
		case <-time.After(wakeEvery):
			wake(s.tid)
		}
	}
}

func (s *server) tell(p *paced) error {
	file, line := p.meter.stopped.ThawWrite()
	return s.guard.hold(file, line)
}

// adopt takes over what a dead pacer held.
func (s *server) adopt() error {
	return s.dir.Sweep(recordKind, func(data []byte) error {
		var j Job
		if err := json.Unmarshal(data, &j); err != nil {
			return fmt.Errorf("read record of a paced group: %w", err)
		}
		err := s.add(j)
		if cgroupfs.IsGone(err) {
			err = j.Release(s.fs)
		}
		if err != nil {
			return state.ErrKeep // the others are not to wait for it
		}
		if p := s.of(j.Limited); p != nil {
			p.forgive()
		}
		return nil
	})
}

// accept hands on what is asked, one question a connection.
func (s *server) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // it is closed
		}
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(startMax))
			q := question{answer: make(chan answer, 1)}
			if json.NewDecoder(conn).Decode(&q.ask) != nil {
				return
			}
			select {
			case s.asks <- q:
				_ = json.NewEncoder(conn).Encode(s.answered(q))
			case <-time.After(startMax): // it has ended: whoever asks asks again
			}
		}()
	}
}

// answered wakes the loop until it has answered.
func (s *server) answered(q question) answer {
	for {
		wake(s.tid)
		select {
		case a := <-q.answer:
			return a
		case <-time.After(wakeEvery):
		}
	}
}

// run paces and answers, by turns.
func (s *server) run(ctx context.Context) error {
	now := clockNow()
	s.loop.spent, s.loop.at = spent(), now // to start is not part of pacing
	for idle := now; ctx.Err() == nil; {
		due, some := s.loop.next()
		if some {
			sleepUntil(min(due, now+sleepMost))
		}
		if err := s.reply(some); err != nil {
			return err
		}
		now = clockNow()
		if due, some = s.loop.next(); some {
			idle = now
		} else if now-idle > idleMax {
			return nil
		}
		if some && due <= now {
			if err := s.loop.step(now); err != nil {
				s.fail(s.loop.groups[0], err)
			}
		}
	}
	return context.Cause(ctx)
}

// thaw lets all groups go.
func (s *server) thaw() {
	for p := range s.jobs {
		_ = p.set(false) // the guard does it too, and the next weir
	}
}

// halt stops all groups, to be looked at when they have.
func (s *server) halt() {
	now := clockNow()
	for p := range s.jobs {
		if !p.stopped {
			_ = p.halt(now) // a group that is gone is found to be at its next look
		}
	}
	heap.Init(&s.loop.groups)
}

// reply answers what is asked by now, and waits for it where there is nothing to pace.
func (s *server) reply(busy bool) error {
	wait := time.Duration(0)
	if !busy {
		wait = sleepMost
	}
	for {
		var q question
		select {
		case <-s.guard.ended:
			close(s.guard.seen)
			s.halt()               // to start another takes milliseconds, in which nobody is to write unseen
			for s.watch() != nil { // without a guard nobody is stopped
				s.thaw()
				time.Sleep(retryAfter)
			}
			for p := range s.jobs {
				p.forgive()
			}
			continue
		case q = <-s.asks:
		default:
			if wait == 0 {
				return nil
			}
			select {
			case q = <-s.asks:
			case <-time.After(wait):
				return nil
			}
		}
		q.answer <- s.answer(q.ask)
		wait = 0
	}
}

func (s *server) answer(q ask) answer {
	var err error
	switch {
	case q.Add != nil:
		err = s.add(*q.Add)
	case q.Remove != nil:
		if p := s.of(*q.Remove); p != nil {
			s.loop.remove(p)
			err = s.drop(p)
		}
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Note: s.note}
}
