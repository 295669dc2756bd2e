package process

import (
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// table is a /proc at one moment: what each process is and has written.
type table map[int]proc

type proc struct {
	Stat
	written uint64
	outside bool // in another group
}

func (p *table) source(now uint64) ([]int, Source) {
	var members []int
	for pid, e := range *p {
		if !e.outside && !e.Ended {
			members = append(members, pid)
		}
	}
	return members, Source{
		Now: func() uint64 { return now },
		Stat: func(pid int) (Stat, error) {
			if e, there := (*p)[pid]; there {
				return e.Stat, nil
			}
			return Stat{}, fs.ErrNotExist
		},
		Open: func(pid int) (Counter, error) {
			if e, there := (*p)[pid]; there {
				return opened{p, pid, e.Started}, nil
			}
			return nil, fs.ErrNotExist
		},
	}
}

// opened is one process, whoever gets its number later.
type opened struct {
	at      *table
	pid     int
	started uint64
}

func (o opened) IO() (IO, error) {
	if e, there := (*o.at)[o.pid]; there && e.Started == o.started {
		return IO{WriteBytes: e.written}, nil
	}
	return IO{}, fs.ErrNotExist
}

func (o opened) Close() error { return nil }

func TestSum(t *testing.T) {
	for name, c := range map[string]struct {
		looks []table
		want  []uint64
	}{
		"what was before the first look": {
			[]table{{7: {Stat: Stat{1, 5, false}, written: 100}}, {7: {Stat: Stat{1, 5, false}, written: 130}}},
			[]uint64{0, 30},
		},
		"a child that its parent waits for": {
			[]table{
				{7: {Stat: Stat{1, 5, false}, written: 100}},
				{7: {Stat: Stat{1, 5, false}, written: 100}, 8: {Stat: Stat{7, 15, false}, written: 40}},
				{7: {Stat: Stat{1, 5, false}, written: 100}, 8: {Stat: Stat{7, 15, true}, written: 50}},
				{7: {Stat: Stat{1, 5, false}, written: 150}},
				{7: {Stat: Stat{1, 5, false}, written: 151}},
			},
			[]uint64{0, 40, 50, 50, 51},
		},
		"a child between two looks, and one that was there before the first": {
			[]table{
				{7: {Stat: Stat{1, 5, false}, written: 100}, 8: {Stat: Stat{7, 6, false}, written: 1000}},
				{7: {Stat: Stat{1, 5, false}, written: 130}, 8: {Stat: Stat{7, 6, false}, written: 1001}},
				{7: {Stat: Stat{1, 5, false}, written: 1131}},
			},
			[]uint64{0, 31, 31},
		},
		"a child that nobody waits for": {
			[]table{
				{7: {Stat: Stat{1, 5, false}}},
				{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{7, 15, false}, written: 40}},
				{7: {Stat: Stat{1, 5, false}}},
				{7: {Stat: Stat{1, 5, false}, written: 2}},
			},
			[]uint64{0, 40, 40, 42},
		},
		"parent and child, taken over by the grandparent": {
			[]table{
				{7: {Stat: Stat{1, 5, false}}},
				{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{7, 15, false}, written: 40}, 9: {Stat: Stat{8, 16, false}, written: 3}},
				{7: {Stat: Stat{1, 5, false}, written: 43}},
			},
			[]uint64{0, 43, 43},
		},
		"the last of them, whose parent is somebody else": {
			[]table{
				{8: {Stat: Stat{1, 5, false}, written: 10}},
				{8: {Stat: Stat{1, 5, false}, written: 50}},
				{},
			},
			[]uint64{0, 40, 40},
		},
		"one that joins, and leaves": {
			[]table{
				{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{1, 6, false}, written: 70, outside: true}},
				{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{1, 6, false}, written: 75}},
				{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{1, 6, false}, written: 80}},
				{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{1, 6, false}, written: 900, outside: true}},
			},
			[]uint64{0, 0, 5, 5},
		},
		"an orphan, waited for by who took it over": {
			[]table{
				{7: {Stat: Stat{1, 5, false}}, 20: {Stat: Stat{7, 6, false}}, 30: {Stat: Stat{20, 7, false}}},
				{7: {Stat: Stat{1, 5, false}}, 30: {Stat: Stat{7, 7, false}, written: 40}},
				{7: {Stat: Stat{1, 5, false}, written: 40}},
			},
			[]uint64{0, 40, 40},
		},
		"one that has left, waited for by one that has not": {
			[]table{
				{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{7, 6, false}, written: 70}},
				{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{7, 6, false}, written: 75}},
				{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{7, 6, false}, written: 80, outside: true}},
				{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{7, 6, false}, written: 900, outside: true}},
				{7: {Stat: Stat{1, 5, false}, written: 900}},
				{7: {Stat: Stat{1, 5, false}, written: 901}},
			},
			[]uint64{0, 5, 5, 5, 5, 6},
		},
		"a number that is given again": {
			[]table{
				{8: {Stat: Stat{1, 5, false}, written: 10}},
				{8: {Stat: Stat{1, 5, false}, written: 50}},
				{8: {Stat: Stat{1, 25, false}, written: 5}},
			},
			[]uint64{0, 40, 45},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s Sum
			var p table
			for i := range c.looks {
				p = c.looks[i]
				members, from := p.source(uint64(10 * (i + 1)))
				if got := s.Look(members, from).WriteBytes; got != c.want[i] {
					t.Fatalf("look %d: %d, want %d", i, got, c.want[i])
				}
			}
		})
	}
}

// The kernel does with a real child what Sum expects of it.
func TestSumOfARealChild(t *testing.T) {
	var s Sum
	self := []int{os.Getpid()}
	own, err := Open(self[0])
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	first, err := own.IO()
	if err != nil {
		t.Fatal(err)
	}
	s.Look(self, Proc)
	defer s.Close()
	dd := exec.Command("dd", "if=/dev/zero", "of="+t.TempDir()+"/f", "bs=64k", "count=16", "status=none")
	if err := dd.Run(); err != nil {
		t.Fatal(err)
	}
	after, err := own.IO()
	if err != nil {
		t.Fatal(err)
	}
	if asked := after.Minus(first).RChar; asked < 16<<16 {
		t.Errorf("dd asked for 1 MiB, this process for %d bytes with it", asked)
	}
	if got, want := s.Look(self, Proc).WriteBytes, after.Minus(first).WriteBytes; got < want {
		t.Errorf("counted %d written, want at least %d", got, want)
	}
}

// A parent that was read before it got what its child has done.
func TestSumOfAChildWaitedForMeanwhile(t *testing.T) {
	p := table{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{7, 6, false}}}
	var s Sum
	look := func(now uint64, members ...int) uint64 {
		_, from := p.source(now)
		return s.Look(members, from).WriteBytes
	}
	look(10, 7, 8)
	p = table{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{7, 6, false}, written: 40}}
	look(20, 7, 8)
	s.live[8].counter = meanwhile{s.live[8].counter, func() { p = table{7: {Stat: Stat{1, 5, false}, written: 40}} }}
	if got := look(30, 7, 8); got != 40 {
		t.Errorf("counted %d, want 40", got)
	}
	if got := look(40, 7); got != 40 {
		t.Errorf("then %d, want 40", got)
	}
}

// meanwhile is a counter that something happens before the reading of.
type meanwhile struct {
	Counter
	before func()
}

func (m meanwhile) IO() (IO, error) {
	m.before()
	return m.Counter.IO()
}

// More processes than files are kept open for.
func TestSumOfMany(t *testing.T) {
	p := table{}
	var s Sum
	look := func(written uint64) uint64 {
		for pid := range 3 * openMost {
			p[pid+1] = struct {
				Stat
				written uint64
				outside bool
			}{Stat{0, 5, false}, written, false}
		}
		members, from := p.source(10)
		return s.Look(members, from).WriteBytes
	}
	look(10)
	if got, want := look(11), uint64(3*openMost); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
}

// Of two children that end at once, one is waited for while the parent is read again for
// the other.
func TestSumOfChildrenWaitedForAtOnce(t *testing.T) {
	p := table{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{7, 6, false}}, 9: {Stat: Stat{7, 6, false}}}
	var s Sum
	look := func(now uint64, members ...int) uint64 {
		_, from := p.source(now)
		return s.Look(members, from).WriteBytes
	}
	look(10, 7, 8, 9)
	p = table{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{7, 6, true}, written: 40}, 9: {Stat: Stat{7, 6, true}, written: 2}}
	if got := look(20, 7); got != 42 {
		t.Fatalf("counted %d, want 42", got)
	}
	reads := 0
	s.live[7].counter = meanwhile{s.live[7].counter, func() {
		if reads++; reads == 2 {
			p = table{7: {Stat: Stat{1, 5, false}, written: 42}}
		}
	}}
	p = table{7: {Stat: Stat{1, 5, false}, written: 40}, 9: {Stat: Stat{7, 6, true}, written: 2}}
	if got := look(30, 7); got != 42 {
		t.Errorf("counted %d, want 42", got)
	}
	if got := look(40, 7); got != 42 {
		t.Errorf("then %d, want 42", got)
	}
}

// Of who is seen first after others were put among the processes, children of theirs count from their first
// byte on, and nobody else. Without such, an orphan counts too: it was born there.
func TestJoined(t *testing.T) {
	for _, joined := range []bool{true, false} {
		p := table{7: {Stat: Stat{1, 5, false}}}
		var s Sum
		members, from := p.source(10)
		s.Look(members, from)
		p[8] = proc{Stat: Stat{7, 15, false}, written: 20}  // a child
		p[9] = proc{Stat: Stat{1, 16, false}, written: 300} // a stranger, or an orphan
		want := uint64(320)
		if joined {
			s.Joined()
			want = 20
		}
		members, from = p.source(20)
		if got := s.Look(members, from).WriteBytes; got != want {
			t.Errorf("joined %v: counted %d, want %d", joined, got, want)
		}
		p[10] = proc{Stat: Stat{1, 25, false}, written: 4000} // nobody was put there again
		members, from = p.source(30)
		if got := s.Look(members, from).WriteBytes; got != want+4000 {
			t.Errorf("joined %v, then: counted %d, want %d", joined, got, want+4000)
		}
	}
}

// Who writes most is known until it ends.
func TestBusiest(t *testing.T) {
	now := table{}
	for _, pid := range []int{1, 2, 3} {
		p := now[pid]
		p.Started = 1
		now[pid] = p
	}
	var s Sum
	look := func(at uint64, wrote ...uint64) (busiest int, writers int) {
		for i, n := range wrote {
			p := now[i+1]
			p.written += n
			now[i+1] = p
		}
		members, from := now.source(at)
		s.Look(members, from)
		of, writers := s.Busiest()
		if of != nil {
			busiest = of.(opened).pid
		}
		return busiest, writers
	}
	check := func(what string, busiest, writers, want, of int) {
		t.Helper()
		if busiest != want || want != 0 && writers != of {
			t.Errorf("%s: %d of %d, want %d of %d", what, busiest, writers, want, of)
		}
	}
	busiest, writers := look(2, 5, 9, 0)
	check("what was before does not count", busiest, writers, 0, 0)
	busiest, writers = look(3, 1, 3, 0)
	check("the second", busiest, writers, 2, 2)
	busiest, writers = look(4)
	check("nobody since", busiest, writers, 2, 2)
	delete(now, 2)
	busiest, writers = look(5)
	check("it has ended", busiest, writers, 0, 0)
}

// A process ends, then its parent, both while others are looked at. The parent's parent has what the first had
// written: it is counted once.
func TestWholeFamilyEndsDuringALook(t *testing.T) {
	p := table{1: {}, 2: {Stat: Stat{Parent: 1}}, 3: {Stat: Stat{Parent: 2}}}
	members, from := p.source(100)
	slices.Sort(members)
	var s Sum
	s.Look(members, from)
	three := p[3]
	three.written = 50
	p[3] = three
	if got := s.Look(members, from).WriteBytes; got != 50 {
		t.Fatalf("%d bytes", got)
	}
	for _, c := range s.live {
		if of, is := c.counter.(opened); is && of.pid == 3 {
			c.counter = ending{of, func() {
				delete(p, 2)
				delete(p, 3)
				one := p[1]
				one.written = 50
				p[1] = one
			}}
		}
	}
	for _, listed := range [][]int{members, {1}, {1}} {
		if got := s.Look(listed, from).WriteBytes; got != 50 {
			t.Fatalf("%d bytes", got)
		}
	}
}

// ending is a process that ends when it is looked at.
type ending struct {
	opened
	end func()
}

func (e ending) IO() (IO, error) {
	e.end()
	return e.opened.IO()
}
