package tally

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

var disk, other = blkdev.Number{Major: 8}, blkdev.Number{Major: 9}

const megabyte = 1_000_000

// wrote is a sum of a command under 10 MB/s.
func wrote(took time.Duration, written, charged, escaped, dirty uint64) Sum {
	began := time.Unix(1000, 0)
	span := Span{began, began.Add(took)}
	s := Sum{Writing: span, Devices: []Device{{Rule: Rule{Device: disk, Limit: limit.Limit{WBPS: limit.PerSecond(10 * megabyte)}}}}}
	s.Reading = escape.Reading{Written: written, Dirty: dirty, Escaped: escaped}
	s.Devices[0].Charged = cgroupfs.Stat{Device: disk, WrittenBytes: charged, Writes: charged / 4096}
	s.Devices[0].Writing = Course{Span: span}
	return s
}

func (s Sum) opened(o ...Opened) Sum { s.Open = o; return s }

func (s Sum) told() Sum { s.Told, s.Devices[0].Escaped = true, s.Escaped; return s }

func TestWrites(t *testing.T) {
	old := Opened{Path: "/old", on: []blkdev.Number{disk}}
	fresh := Opened{Path: "/fresh", New: true, on: []blkdev.Number{disk}}
	elsewhere := Opened{Path: "/nfs"}
	for name, c := range map[string]struct {
		sum  Sum
		want State
	}{
		"nothing":                             {wrote(0, 0, 0, 0, 0), Idle},
		"all charged, at the limit":           {wrote(10*time.Second, 100*megabyte, 100*megabyte, 0, 0), Held},
		"all charged, in memory before":       {wrote(time.Second, 100*megabyte, 11*megabyte, 0, 89*megabyte).opened(fresh), Held},
		"one slice at once":                   {wrote(0, megabyte, megabyte, 0, 0), Held},
		"over another's file":                 {wrote(95*time.Millisecond, 63*megabyte, 0, 63*megabyte, 0).opened(old), NotHeld},
		"over another's file, seen":           {wrote(95*time.Millisecond, 63*megabyte, 0, 63*megabyte, 0).told(), NotHeld},
		"over another's file, slowly":         {wrote(10*time.Second, 60*megabyte, 0, 60*megabyte, 0).opened(old), Held},
		"own and escaped together":            {wrote(10*time.Second, 200*megabyte, 100*megabyte, 100*megabyte, 0).told(), NotHeld},
		"much, also on a disk without limit":  {wrote(time.Second, 63*megabyte, 0, 63*megabyte, 0).opened(old, elsewhere), NotTold},
		"much, to a file that is compressed":  {wrote(time.Second, 63*megabyte, 2*megabyte, 61*megabyte, 0).opened(Opened{Path: "/small", New: true, compressed: true, on: []blkdev.Number{disk}}), NotTold},
		"in memory, of a file that was there": {wrote(time.Second, 63*megabyte, megabyte, 0, 62*megabyte).opened(old), NotTold},
		"all in memory":                       {wrote(time.Second, 200*megabyte, 0, 0, 200*megabyte).opened(fresh), NotTold},
		"all in memory, seen":                 {wrote(time.Second, 200*megabyte, 0, 0, 200*megabyte).told(), NotTold},
		"dirty, and by nobody here":           {wrote(0, 0, 0, 0, 4096), Idle},
		"in memory, of a file that was gone":  {wrote(time.Second, 63*megabyte, megabyte, 0, 62*megabyte), NotTold},
		"the same, seen":                      {wrote(time.Second, 63*megabyte, megabyte, 0, 62*megabyte).told(), Held},
	} {
		if v := c.sum.Writes(c.sum.Devices[0]); v.State != c.want {
			t.Errorf("%s: %+v, want %s", name, v, c.want)
		}
	}
}

// Who is paused after a burst, until the limit has caught up, is held; who only does something
// else for as long is not.
func TestWritesThatAreHeldByPauses(t *testing.T) {
	s := wrote(100*time.Millisecond, 30*megabyte, 0, 30*megabyte, 0).told()
	s.Ended = s.Writing.First.Add(10 * time.Second)
	for paused, want := range map[time.Duration]State{3 * time.Second: Held, 200 * time.Millisecond: NotHeld, 0: NotHeld} {
		s.Paused = paused
		if v := s.Writes(s.Devices[0]); v.State != want {
			t.Errorf("paused for %s: %+v, want %s", paused, v, want)
		}
	}
}

// What could not be read is neither held nor nothing.
func TestWritesThatCouldNotBeRead(t *testing.T) {
	for _, s := range []Sum{wrote(0, 0, 0, 0, 0), wrote(10*time.Second, 100*megabyte, 100*megabyte, 0, 0)} {
		s.Missed = errors.New("no such file")
		if v := s.Writes(s.Devices[0]); v.State != NotTold || len(v.Doubts) != 1 {
			t.Errorf("%+v, want %s", v, NotTold)
		}
		if v := s.Reads(s.Devices[0]); v.State != NotTold {
			t.Errorf("%+v, want %s", v, NotTold)
		}
	}
}

// What may not have been written is not said to be past a limit.
func TestWritesThatMayBeLess(t *testing.T) {
	for want, s := range map[State]Sum{
		NotTold: wrote(time.Second, 63*megabyte, 0, 63*megabyte, 0),
		NotHeld: wrote(time.Second, 63*megabyte, 63*megabyte, 0, 0), // the kernel has charged it
		Held:    wrote(10*time.Second, 63*megabyte, 0, 63*megabyte, 0),
	} {
		s.Unsure = "why"
		if v := s.Writes(s.Devices[0]); v.State != want || (want == NotTold) != (len(v.Doubts) == 1 && v.Doubts[0] == "why") {
			t.Errorf("%+v, want %s", v, want)
		}
	}
}

// Which of two disks it went to is not known without BPF.
func TestWritesOfTwoDisks(t *testing.T) {
	s := wrote(time.Second, 63*megabyte, 0, 63*megabyte, 0)
	s.Devices = append(s.Devices, Device{Rule: Rule{Device: other, Limit: s.Devices[0].Limit}})
	if v := s.Writes(s.Devices[0]); v.State != NotTold {
		t.Errorf("%+v, want %s", v, NotTold)
	}
}

// A limit on reads from another disk does not make it unknown where writes went.
func TestWritesBesideALimitOnReads(t *testing.T) {
	for want, charged := range map[State]uint64{Held: 0, NotHeld: 100 * megabyte} {
		s := wrote(10*time.Second, 60*megabyte+charged, charged, 60*megabyte, 0)
		s.Devices = append(s.Devices, Device{Rule: Rule{Device: other, Limit: limit.Limit{RBPS: limit.PerSecond(50 * megabyte)}}})
		if v := s.Writes(s.Devices[0]); v.State != want {
			t.Errorf("%+v, want %s", v, want)
		}
		s.Devices[1].Limit = limit.Limit{WIOPS: limit.PerSecond(100)}
		if v := s.Writes(s.Devices[0]); v.State != NotTold {
			t.Errorf("of two limits on writes: %+v, want %s", v, NotTold)
		}
	}
}

// What went through a volume was charged to the volume and to its disk, and was written once.
func TestAVolumeAndItsDisk(t *testing.T) {
	s := wrote(10*time.Second, 200*megabyte, 100*megabyte, 150*megabyte, 0)
	s.Devices = append(s.Devices, Device{Rule: Rule{Device: other}, Charged: cgroupfs.Stat{Device: other, WrittenBytes: 100 * megabyte}})
	s.upon = blkdev.Upon{disk: {other}}
	if s.Without(0); s.Escaped != 100*megabyte {
		t.Errorf("%d bytes went past the limit", s.Escaped)
	}
	s.Stats = []cgroupfs.Stat{s.Devices[0].Charged, s.Devices[1].Charged}
	s.Dirty, s.Cancelled = 3*megabyte, 4*megabyte
	for _, c := range []struct {
		upon blkdev.Upon
		want uint64
	}{{s.upon, 107}, {nil, 207}} {
		if got := s.seen(c.upon); got != c.want*megabyte {
			t.Errorf("%v: it is known of %d bytes where they went", c.upon, got)
		}
	}
}

// What a limit on operations has let past it has no number.
func TestOperationsPastALimit(t *testing.T) {
	s := wrote(10*time.Second, 63*megabyte, 0, 63*megabyte, 0).told()
	s.Devices[0].Limit = limit.Limit{WIOPS: limit.PerSecond(100)}
	if v := s.Writes(s.Devices[0]); v.State != NotTold || len(v.Doubts) == 0 {
		t.Errorf("%+v, want %s with a reason", v, NotTold)
	}
}

func TestHandedOn(t *testing.T) {
	for _, c := range []struct {
		command string
		written uint64
		want    bool
	}{{"/usr/bin/docker", 0, true}, {"systemd-run", 4096, true}, {"docker", megabyte, false}, {"dd", 0, false}} {
		if got := wrote(0, c.written, 0, 0, 0).HandedOn(c.command); got != c.want {
			t.Errorf("%s, %d bytes: %t", c.command, c.written, got)
		}
	}
}

// What nobody has written has not gone past a limit either.
func TestWithout(t *testing.T) {
	began := time.Now()
	paced := Sum{Writing: Span{began, began.Add(time.Second)}, calling: Span{began, began.Add(3 * time.Second)}, Reading: escape.Reading{Written: 100 * megabyte, Escaped: 90 * megabyte}, Devices: []Device{{Charged: cgroupfs.Stat{WrittenBytes: 10 * megabyte}}}}
	paced.Without(80 * megabyte)
	if took := paced.Writing.Duration(); took != 3*time.Second {
		t.Errorf("it took %s", took)
	}
	if paced.Written != 20*megabyte || paced.Escaped != 10*megabyte {
		t.Errorf("written %d, past the limit %d", paced.Written, paced.Escaped)
	}
	paced.Without(megabyte << 10)
	if paced.Written != 0 || paced.Escaped != 0 {
		t.Errorf("written %d, past the limit %d, want none", paced.Written, paced.Escaped)
	}
}

// What processes wrote outside of the group is neither held nor nothing, though BPF saw none of it.
func TestWritesOfWhoHasLeft(t *testing.T) {
	lots := slack() + 64*megabyte
	for name, c := range map[string]struct {
		sum     Sum
		escaped map[blkdev.Number]uint64
		left    bool
		want    State
	}{
		"all of it":            {sum: wrote(time.Second, lots, 0, 0, 0), left: true, want: NotTold},
		"after a little":       {sum: wrote(time.Second, lots+megabyte, megabyte, 0, 0), left: true, want: NotTold},
		"it is in memory":      {sum: wrote(time.Second, lots+megabyte, megabyte, 0, lots), left: true, want: Held},
		"all that was charged": {sum: wrote(10*time.Second, 90*megabyte, 90*megabyte, 0, 0), left: true, want: Held},
		"to another disk":      {sum: wrote(time.Second, lots, 0, 0, 0), escaped: map[blkdev.Number]uint64{other: lots}, left: true, want: Idle},
		"past it as well":      {sum: wrote(time.Second, 2*lots, 0, 0, 0), escaped: map[blkdev.Number]uint64{disk: lots}, left: true, want: NotHeld},
		"nobody has left":      {sum: wrote(time.Second, lots, 0, 0, 0), want: Idle},
	} {
		tally := Tally{sum: c.sum, watcher: seenWatcher{escaped: c.escaped}}
		tally.sum.Left, tally.sum.Stats = c.left, []cgroupfs.Stat{c.sum.Devices[0].Charged}
		tally.tell(t.Context())
		if v := tally.sum.Writes(tally.sum.Devices[0]); v.State != c.want || (c.want == NotTold) != (len(v.Doubts) == 1) {
			t.Errorf("%s: %+v, want %s", name, v, c.want)
		}
	}
}

// A seenWatcher has seen what escaped.
type seenWatcher struct {
	Watcher
	escaped map[blkdev.Number]uint64
}

func (w seenWatcher) Remove(uint64) error                                      { return nil }
func (w seenWatcher) Escaped(uint64) (map[blkdev.Number]uint64, error)         { return w.escaped, nil }
func (w seenWatcher) Files(uint64, *cgroupfs.Hierarchy) ([]escape.File, error) { return nil, nil }
