package process

import "io/fs"

// A Sum adds up the I/O of processes that come, have children, and end, from its first look on.
//
// A child's I/O counts for the child until its parent has waited for it; then it counts for the
// parent (wait_task_zombie adds the two). So a child between two looks is not missed, and a
// child that was counted itself must not be counted again with its parent. I/O that the parent
// never gets (it ignores SIGCHLD, or has ended first) stays counted.
type Sum struct {
	looked  bool
	at      uint64 // when those of the last look were listed, in ticks since the boot
	seen    uint64 // when that look was
	joined  bool   // see Joined
	live    map[int]*counted
	busiest *counted // see Busiest
	writers int
	adopted uint64 // when those without a parent here were looked at last, in ticks
	left    bool   // see Left
	ended   IO     // what went with nobody to take it over
	total   IO
}

// A Counter reads what one process has done, for as long as it has not been waited for.
type Counter interface {
	IO() (IO, error)
	Close() error
}

// counted is a process as it was at the last look.
type counted struct {
	parent  int
	counter Counter
	first   IO // not counted: what it did when it was none of these
	last    IO
	round   bool // of the looks, by turns: when it was seen last
	outside bool // it has left them; its parent may get what it does there
}

// now takes in what a process has done by now.
func (c *counted) now(io IO, outside bool) {
	if c.outside || outside {
		c.first = c.first.Plus(io.Minus(c.last))
	}
	c.last, c.outside = io, outside
}

// adoptEvery is how often, in ticks, the parents of processes without a parent here are looked
// up while none of these processes ends: a process outside of the Sum can end too.
const adoptEvery = TicksPerSecond

// openMost is how many files one Sum keeps open. The files of further processes are opened at
// each look, which takes ten times as long: 300 processes that began to write at once wrote for
// 0.3 s before they were seen.
const openMost = 512

// brief is the counter of a process whose file is not kept open.
type brief struct {
	pid     int
	started uint64
	from    Source
}

func (b brief) IO() (IO, error) {
	if stat, err := b.from.Stat(b.pid); err != nil || stat.Started != b.started {
		return IO{}, fs.ErrNotExist
	}
	counter, err := b.from.Open(b.pid)
	if err != nil {
		return IO{}, err
	}
	defer counter.Close()
	return counter.IO()
}

func (b brief) Close() error { return nil }

func (c *counted) done() IO { return c.last.Minus(c.first) }

// A Source tells of processes.
type Source struct {
	Now  func() (ticks uint64) // since the boot
	Stat func(pid int) (Stat, error)
	Open func(pid int) (Counter, error)
	// Last is what a process has done that has ended, as far as it is known; nil: it never is.
	Last func(pid int) (done IO, known bool)
}

// Proc is /proc.
var Proc = Source{Now: Now, Stat: ReadStat, Open: Open}

// Left reports whether one of the processes is elsewhere since, or was when it ended: what it has
// done there is not counted.
func (s *Sum) Left() bool {
	for _, c := range s.live {
		if c.outside {
			return true
		}
	}
	return s.left
}

// Joined says that others were put among the processes since the last look. Whom the next look sees first,
// and is no child of one of them, has come from elsewhere, however young it is.
func (s *Sum) Joined() { s.joined = true }

// Look counts the processes, of which members are all, and returns what they have done
// since the first look. Processes that cannot be read count nothing.
func (s *Sum) Look(members []int, from Source) IO { return s.LookAt(members, from.Now(), from) }

// LookAt is Look for processes that were listed earlier, at a time in ticks. Of who began between that and the
// look, a child of one of them was born among them, and anybody else has come from elsewhere.
func (s *Sum) LookAt(members []int, listed uint64, from Source) IO {
	if s.live == nil {
		s.live = make(map[int]*counted)
	}
	now := from.Now()
	l := look{Sum: s, from: from}
	for _, c := range s.live {
		l.round = !c.round
		break
	}
	l.at(members)
	l.rest()
	if l.writers > 0 {
		s.writers = l.writers
	}
	if l.bequeath() || now-s.adopted > adoptEvery {
		s.adopt(from)
		s.adopted = now
	}
	s.looked, s.at, s.seen, s.joined = true, listed, now, false
	sum := s.ended
	for _, c := range s.live {
		sum = sum.Plus(c.done())
	}
	missing := s.total.Minus(sum) // nobody has taken it over
	s.ended, s.total = s.ended.Plus(missing), sum.Plus(missing)
	return s.total
}

// A look is one at the processes of a Sum.
type look struct {
	*Sum
	from    Source
	round   bool   // see counted
	most    uint64 // that one of them has written since the last look
	writers int
	gone    map[int]*counted // nil: none
}

// at counts the members.
func (l *look) at(members []int) {
	for _, pid := range members {
		if c := l.live[pid]; c != nil {
			if io, err := c.counter.IO(); err == nil {
				l.wrote(c, io.Minus(c.last))
				c.now(io, false)
				c.round = l.round
				continue
			}
			l.lose(pid, c)
		}
		if c := l.open(pid); c != nil {
			l.wrote(c, c.done())
			c.round = l.round
			l.live[pid] = c
		}
	}
}

// rest counts those that were members at an earlier look.
func (l *look) rest() {
	for pid, c := range l.live {
		if c.round == l.round {
			continue
		}
		io, err := c.counter.IO()
		if err != nil {
			l.lose(pid, c)
			continue
		}
		// One that ends is no group's member any more, and its parent has not got it yet.
		outside := c.outside
		if !outside {
			stat, err := l.from.Stat(pid)
			outside = err == nil && !stat.Ended
		}
		c.now(io, outside)
		c.round = l.round
	}
}

func (l *look) wrote(c *counted, more IO) {
	if more.WriteBytes > 0 {
		l.writers++
	}
	if more.WriteBytes > l.most {
		l.busiest, l.most = c, more.WriteBytes
	}
}

// lose takes a process out that has ended.
func (l *look) lose(pid int, c *counted) {
	_ = c.counter.Close()
	delete(l.live, pid)
	l.left = l.left || c.outside
	if l.from.Last != nil {
		if last, known := l.from.Last(pid); known && last.WriteBytes > c.last.WriteBytes {
			last = last.withCalls(c.last)
			l.wrote(c, last.Minus(c.last))
			c.now(last, c.outside)
		}
	}
	if l.busiest == c {
		l.busiest = nil
	}
	if l.gone == nil {
		l.gone = make(map[int]*counted)
	}
	l.gone[pid] = c
}

// bequeath gives what has ended to its parents, and reports whether any had.
func (l *look) bequeath() (some bool) {
	for len(l.gone) > 0 {
		some = true
		heirs := l.hand(l.gone)
		l.gone = nil
		for pid, c := range l.live { // who has gone since heirs were read again is in that; an heir that is gone too has handed it on
			if !heirs[pid] && !heirs[c.parent] {
				continue
			}
			if _, err := c.counter.IO(); err != nil {
				l.lose(pid, c)
			}
		}
	}
	return some
}

// adopt finds the parents of processes that have none here: the kernel gives an orphan a new
// parent.
func (s *Sum) adopt(from Source) {
	for pid, c := range s.live {
		if s.live[c.parent] != nil {
			continue
		}
		if stat, err := from.Stat(pid); err == nil {
			c.parent = stat.Parent
		}
	}
}

// open begins to count a process; nil if it cannot be read.
func (l *look) open(pid int) *counted {
	s, from := l.Sum, l.from
	stat, err := from.Stat(pid)
	if err != nil {
		return nil
	}
	counter, err := from.Open(pid)
	if err != nil {
		return nil
	}
	io, err := counter.IO()
	if err != nil {
		_ = counter.Close()
		return nil
	}
	if len(s.live) >= openMost {
		_ = counter.Close()
		counter = brief{pid, stat.Started, from}
	}
	c := &counted{parent: stat.Parent, counter: counter, last: io}
	if !s.looked || stat.Started < s.at || (s.joined || stat.Started < s.seen) && s.live[stat.Parent] == nil && l.gone[stat.Parent] == nil {
		c.first = io // it has joined them, and brought this along
	}
	return c
}

// hand gives what has ended to the parents that are there: they have all of it now, also
// what was not to be counted. It returns those parents.
func (s *Sum) hand(gone map[int]*counted) (heirs map[int]bool) {
	heirs = make(map[int]bool)
	for _, was := range gone {
		heir, step := was.parent, 0
		for ; s.live[heir] == nil && gone[heir] != nil && step < len(gone); step++ {
			heir = gone[heir].parent
		}
		if c := s.live[heir]; c != nil {
			c.first = c.first.Plus(was.first)
			heirs[heir] = true
			if io, err := c.counter.IO(); err == nil { // it may have been read before
				c.last = io
			}
		} else {
			s.ended = s.ended.Plus(was.done())
		}
	}
	return heirs
}

// Busiest is who has written most between the last two looks in which somebody had, and how
// many had; nil if that has ended. It is good until the next look.
func (s *Sum) Busiest() (of Counter, writers int) {
	if s.busiest == nil {
		return nil, 0
	}
	return s.busiest.counter, s.writers
}

// Close stops counting.
func (s *Sum) Close() {
	for _, c := range s.live {
		_ = c.counter.Close()
	}
	s.live, s.busiest = nil, nil
}
