package pacer

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// recordKind is the kind of the records of paced groups.
const recordKind = "pace"

const (
	lockName = "pacer.lock"
	// idleMax is how long a pacer stays without a group.
	idleMax = 2 * time.Second
	// sleepMost is the longest single sleep, because Go has no other thread for its own work.
	sleepMost = 100 * time.Millisecond
)

// A server is the pacer: its groups and its askers. It is one goroutine, which never waits for
// another and is the only one that runs. Each hand-over between goroutines goes through threads
// without real-time priority. On a busy machine that took up to 33 ms, in which a group wrote
// without being counted.
type server struct {
	dir    state.Dir
	fs     *cgroupfs.FS
	loop   loop
	jobs   map[*paced]*held
	guards []*guard
	askers *askers
	thread thread
	polled []unix.PollFd // as many as firstGuard, the guards, and then the askers
	beaten time.Duration // when the guards were told last that the pacer runs

	arrivals *arrivals
	exits    exits
	loans    []loan

	escapes programs[escape.Watcher] // see what escapes; without them nobody is stopped for that
	partial programs[Parts]          // tell how much of folios is written; without them folios count whole
	orphans orphans
	waiting map[Place]*waiting // by limited group
	noted   time.Duration      // when the records were told last whom it cannot stop

	elsewhere func() bool // see Programs; nil: no other pacer has more
	over      bool        // it ends for another pacer
}

// held is what belongs to a paced group.
type held struct {
	job     Job
	record  *state.Record
	resumed bool // a pacer that was killed has held it before
}

// Serve runs the pacer. It returns at once if another pacer is running, and when it has had no
// group for a while.
func Serve(ctx context.Context, dir state.Dir, fs *cgroupfs.FS, p Programs) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("pace: permission denied (run weir as root)")
	}
	arrivals := newArrivals() // first: see there
	lock, err := takeOver(dir)
	if err != nil || lock == nil {
		arrivals.close()
		return err
	}
	s := &server{dir: dir, fs: fs, jobs: make(map[*paced]*held), elsewhere: p.Elsewhere, arrivals: arrivals}
	defer func() {
		if !s.over {
			lock.Unlock()
			return
		}
		s.leaveRecords()
		lock.Unlock() // the next one waits for it
		_, failed := start()
		err = errors.Join(err, failed)
	}()
	askers, err := listen(filepath.Join(dir.Path(), socketName))
	if err != nil {
		return err
	}
	defer askers.close()
	askers.locked = func() bool { return lock.IsOn(filepath.Join(dir.Path(), lockName)) }
	if err := errors.Join(leave(fs), turnKey(fs)); err != nil {
		return err
	}
	markCells(dir)
	s.askers = askers
	s.escapes = programs[escape.Watcher]{kind: EscapesArg, take: p.Escapes.Take, missing: p.Missing, begin: beginLoad}
	s.partial = programs[Parts]{kind: PartialArg, take: p.Parts.Take, missing: p.Missing, begin: beginLoad}
	defer s.arrivals.close()
	s.exits = openExits()
	defer s.exits.close()
	s.thread.beExact()
	beSpared()
	if err = s.watch(); err == nil {
		s.adopt(func(Place) bool { return true })
		err = s.run(ctx)
	} else {
		for _, g := range s.guards { // one alone would start another pacer, which has no second guard either
			g.end()
		}
		s.guards = nil
	}
	s.thaw()
	return errors.Join(err, s.escapes.close(), s.partial.close(), removeKey(fs), removeStrays(dir, fs))
}

// takeOverMax is how long the lock of a killed pacer may stay taken after its guard has seen
// its end.
const takeOverMax = time.Second

// takeOver waits for the lock of a pacer that is ending. It returns nil if a pacer goes on.
func takeOver(dir state.Dir) (*state.Lock, error) {
	for began := time.Now(); ; time.Sleep(startLook) {
		lock, err := dir.Own(lockName)
		if err != nil || lock != nil {
			return lock, err
		}
		if time.Since(began) > takeOverMax {
			return nil, nil
		}
	}
}

// leave moves the pacer, and with it its guards, out of its starter's groups. The pacer must
// not pause itself, end with its starter, or share its starter's limits.
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

// watch starts guards, up to their number, and tells them about all groups.
func (s *server) watch() error {
	for len(s.guards) < guardsMost {
		g, err := newGuard()
		if err != nil {
			return err
		}
		if err := s.inform(g); err != nil { // one that knows some cells alone is none
			g.end()
			return err
		}
		s.guards = append(s.guards, g)
	}
	return nil
}

// inform tells a new guard about all cells.
func (s *server) inform(g *guard) error {
	for p := range s.jobs {
		for _, cell := range p.cells.all {
			file, line := cell.own.ThawWrite()
			if err := g.hold(file, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell tells the guards about a cell, and untell that it is gone. A guard that does not listen
// is dropped; at least one has to listen.
func (s *server) tell(cell cgroupfs.Group) error {
	file, line := cell.ThawWrite()
	return s.toGuards(func(g *guard) error { return g.hold(file, line) })
}

func (s *server) untell(cell cgroupfs.Group) error {
	file, _ := cell.ThawWrite()
	return s.toGuards(func(g *guard) error { return g.release(file) })
}

func (s *server) toGuards(say func(*guard) error) error {
	var errs []error
	for _, g := range s.guards {
		errs = append(errs, say(g))
	}
	if slices.Contains(errs, nil) {
		return nil
	}
	return errors.Join(errs...)
}

// beat tells the guards that the pacer is running. If it was silent for so long that the guards
// have resumed the groups, it pauses them again.
func (s *server) beat(now time.Duration) {
	if now-s.beaten < beatEvery || len(s.jobs) == 0 {
		return
	}
	if now-s.beaten > stallMost*guardLook*3/4 {
		for p := range s.jobs {
			if p.stopped {
				p.stopped = false
				_ = p.halt(now) // a group that is gone is found to be at its next look
			}
		}
		heap.Init(&s.loop.groups)
	}
	s.beaten = now
	for _, g := range s.guards {
		g.beat()
	}
}

// run paces groups and answers askers in turn.
func (s *server) run(ctx context.Context) error {
	now := clockNow()
	s.loop.spent, s.loop.at = spent(), now // to start is not part of pacing
	for idle := now; ctx.Err() == nil && !s.over; {
		until := now + sleepMost
		if due, some := s.loop.next(); some {
			until = min(due, until)
		}
		until = s.repayBy(s.dueWaiting(until))
		if s.sleep(until) {
			s.attend()
			s.loop.spent = spent() // to answer is not part of pacing
		}
		now = clockNow()
		s.beat(now)
		s.repayDue(now)
		s.thread.stay(now)
		s.tryOrphans(now)
		s.tryWaiting(now)
		s.noteMissed(now)
		s.askers.remain(now)
		due, some := s.loop.next()
		if some || s.loads() || len(s.orphans.places)+len(s.waiting) > 0 {
			idle = now
		} else if now-idle > idleMax {
			return nil
		}
		if some && due <= now {
			first := s.loop.groups[0] // a step that stops others moves it
			if err := s.loop.step(now); err != nil {
				s.fail(first, err)
			}
			s.lend(first, now)
		}
		s.exits.attend(now) // once who has come was looked at
	}
	return context.Cause(ctx)
}

// firstGuard is where the guards are in polled.
const firstGuard = 4

// sleep sleeps until a moment, or until a guard or an asker needs the pacer.
func (s *server) sleep(until time.Duration) (wanted bool) {
	s.askers.hurry()
	s.polled = append(s.polled[:0], s.arrivals.poll(), s.alarmPoll(), s.escapes.poll(), s.partial.poll())
	for _, g := range s.guards {
		s.polled = append(s.polled, g.poll)
	}
	s.polled = s.askers.poll(s.polled)
	return pollUntil(until, s.polled)
}

// attend handles what sleep reported.
func (s *server) attend() {
	askers := s.polled[firstGuard+len(s.guards):]
	guards := len(s.guards)
	for i, polled := range s.polled[firstGuard : firstGuard+guards] {
		if polled.Revents != 0 {
			s.guards[i].reap()
			s.guards[i] = nil
		}
	}
	if s.guards = slices.DeleteFunc(s.guards, func(g *guard) bool { return g == nil }); len(s.guards) < guards {
		s.halt()               // to start another takes milliseconds, in which nobody is to write unseen
		for s.watch() != nil { // without its guards nobody is stopped
			s.thaw()
			time.Sleep(retryAfter)
		}
		for p := range s.jobs {
			p.forgive()
		}
	}
	if s.polled[0].Revents != 0 {
		s.greet()
	}
	if s.polled[1].Revents != 0 {
		s.alarm()
		heap.Init(&s.loop.groups)
	}
	escapes := s.polled[2].Revents != 0 && s.escapes.attend()
	if partly := s.polled[3].Revents != 0 && s.partial.attend(); escapes || partly {
		s.hasLoaded()
		heap.Init(&s.loop.groups)
	}
	s.askers.serve(askers, s.answer)
}

// thaw resumes all groups.
func (s *server) thaw() {
	s.repayOf(nil)
	for p := range s.jobs {
		_ = p.letGo() // the guard does it too, and the next weir
	}
}

// greet makes the groups due that a process has joined.
func (s *server) greet() {
	now := clockNow()
	for _, r := range s.arrivals.read() {
		r.arrived = true
	}
	for p := range s.jobs {
		if p.roster.arrived {
			p.due = now
			if _, is := p.meter.(*written); is {
				s.exits.listen(now)
			}
		}
	}
	heap.Init(&s.loop.groups)
}

// halt pauses all groups, and plans a look once they are paused.
func (s *server) halt() { s.haltBut(nil) }

// haltBut pauses all groups but one. The pacer is about to do something that can take tens of
// milliseconds, in which no group may write without being counted. (A process is moved when an
// RCU grace period has passed: 7 to 95 ms were seen on 6.18; within 2 ms of another move it
// takes 0.06 to 0.4 ms.) A group of which nothing escapes goes on.
func (s *server) haltBut(one *paced) {
	now := clockNow()
	for p := range s.jobs {
		if p != one && !p.stopped && p.rests(now) == 0 {
			_ = p.halt(now) // a group that is gone is found to be at its next look
		}
	}
	heap.Init(&s.loop.groups)
}

func (s *server) answer(q ask) answer {
	var err error
	switch {
	case q.Add != nil:
		if err = s.add(*q.Add); err == nil {
			err = s.forgo(q.Add.Limited)
		}
	case q.Seen != nil:
		var seen *Seen
		if seen, err = s.seen(*q.Seen); err == nil {
			return answer{Seen: seen}
		}
	case q.Sums:
		return answer{Sums: s.sums()}
	case q.Remove != nil:
		if p := s.of(*q.Remove); p != nil {
			s.loop.remove(p)
			err = s.drop(p)
		} else {
			err = errors.Join(s.forgo(*q.Remove), s.disown(*q.Remove))
		}
	}
	if err != nil {
		return answer{Error: err.Error(), later: errors.Is(err, errLoading)}
	}
	return answer{Note: s.note(q)}
}
