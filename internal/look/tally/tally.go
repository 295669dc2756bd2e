package tally

import (
	"context"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A Rule is a limit on a device.
type Rule struct {
	Device blkdev.Number
	Limit  limit.Limit
}

// A Sum is what a group did, from the tally's start to its end.
type Sum struct {
	escape.Reading
	Writing Span // in which processes made dirty, or wrote directly
	calling Span // in which calls of processes wrote to anything
	// estimated is what the Estimate has as escaped, also if Told, or cut off files since.
	estimated uint64
	Devices   []Device
	upon      blkdev.Upon // of Devices
	// Escapes are the files through which bytes went past the limits, the largest amount first.
	Escapes []escape.File
	Ended   time.Time // the last look
	// Paused is how long weir's pacer has had the group paused since its last write.
	Paused time.Duration
	Missed error  // why a look failed: what was done is not known then
	Unsure string // why Written may be more than was written; "": it is not
	// Queued is how long the throttle still needs for charged writes (cgroup v1).
	Queued time.Duration
	// Told says that escapes were seen, by disk, and not estimated.
	Told bool
	// strayed are bytes that were written, and that nobody has seen go anywhere, though BPF sees what
	// escapes: processes have left the group.
	strayed uint64
	spare   uint64 // what Without has taken out
	// Open is what processes had open for writing when much had escaped or was dirty. It is
	// empty if Told.
	Open []Opened
}

// A Watcher sees what escapes groups: a helper (escape.Asker), or the pacer.
type Watcher interface {
	Add(g cgroupfs.Group, step uint64) error
	Remove(id uint64) error
	Escaped(id uint64) (map[blkdev.Number]uint64, error)
	Files(id uint64, h *cgroupfs.Hierarchy) ([]escape.File, error)
}

// A Tally reads the counters of a group again and again.
type Tally struct {
	group    cgroupfs.Group
	cell     *cgroupfs.Group // in which the pacer stops its processes; nil: it does not
	stopped  bool            // they were at the last look
	estimate *escape.Estimate
	read     func(written uint64) (escape.Reading, error) // the estimate's LookAt
	watcher  Watcher                                      // nil: not to be had
	id       uint64
	began    time.Time
	disks    []blkdev.Counters
	at       time.Time
	lived    time.Time // the last look that found processes
	sum      Sum
	most     uint64        // the most that seemed to have escaped at a look
	asked    chan answer   // of the watcher, who is late: see ask
	waited   time.Duration // for the watcher, in all
	opened   uint64        // what had escaped, or was dirty, when open files were listed last
	ruled    time.Time     // when the rules were read last; zero: they cannot be

	quit, done chan struct{}
}

const (
	// lookFirst and lookMost bound the time from one look to the next, lookPart what it is of
	// the time since the start, and lookCost what a look takes of it, once all looks have taken
	// longer than lookFree: a short command is over before that.
	lookFirst  = 5 * time.Millisecond
	lookMost   = 50 * time.Millisecond
	lookPart   = 20
	lookCost   = 100
	lookFree   = 25 * time.Millisecond
	lookSmooth = 16
)

// Start starts to measure a group with rules. The watcher may be nil; it belongs to the caller.
// The cell is where the pacer pauses the group's processes; nil: it does not.
func Start(g cgroupfs.Group, rules []Rule, w Watcher, cell *cgroupfs.Group) (*Tally, error) {
	t := &Tally{group: g, cell: cell, began: time.Now(), quit: make(chan struct{}), done: make(chan struct{})}
	var devices []blkdev.Number
	for _, r := range rules {
		devices = append(devices, r.Device)
		t.sum.Devices = append(t.sum.Devices, Device{Rule: r})
		c, _ := blkdev.New("/").Counters(r.Device) // one that cannot be read has done nothing
		t.disks = append(t.disks, c)
	}
	var err error
	if t.estimate, err = escape.NewEstimate(g, devices); err != nil {
		return nil, err
	}
	t.read, t.sum.upon = t.estimate.LookAt, t.estimate.Upon()
	if w != nil && g.Hierarchy().Version == cgroupfs.V2 {
		if t.id, err = g.ID(); err == nil && w.Add(g, 0) == nil {
			t.watcher, t.sum.Told = w, true
		}
	}
	t.at, t.lived = t.began, t.began
	if now, err := g.Rules(); err == nil {
		t.ruled = t.began
		for i := range t.sum.Devices {
			t.sum.Devices[i].began = on(now, t.sum.Devices[i].Device)
		}
	}
	go t.run()
	return t, nil
}

func (t *Tally) run() {
	defer close(t.done)
	var cost, all time.Duration // of a look, lately: one in which the machine was busy counts little; and of all
	for every := lookFirst; ; {
		select {
		case <-t.quit:
			return
		case <-time.After(every):
		}
		began, waited := time.Now(), t.waited
		t.look(0)
		took := time.Since(began) - (t.waited - waited) // who waits costs nothing
		if cost = min(cost+(took-cost)/lookSmooth, took); cost == 0 {
			cost = took
		}
		all += took
		age := time.Since(t.began)
		if every = min(max(lookFirst, age/lookPart), lookMost); all > lookFree+age/lookCost {
			every = max(every, lookCost*cost)
		}
	}
}

// look reads the counters; those that cannot be read keep their values. What it finds was done
// between the beginning of the last reading and the end of this one, however long they took.
func (t *Tally) look(written uint64) {
	read, since := time.Now(), t.at
	if written > 0 { // by processes that have ended since
		since = t.lived
	}
	r, err := t.read(written)
	if err != nil {
		t.sum.Missed = err
		return
	}
	now := time.Now()
	m := moment{before: t.at, now: now, read: read, since: since, wrote: r.Written > t.sum.Written, queues: t.group.Hierarchy().Version == cgroupfs.V1}
	weirs, owners := t.pauses()
	stopped := weirs && !owners
	m.halted, m.waits = weirs || owners, r.Underway > slack()
	if stopped && t.stopped {
		m.paused = now.Sub(later(t.at, t.sum.Ended)) // each time once, though moments overlap by a reading
	}
	t.stopped = stopped
	t.take(m, r)
	t.list(r)
	if now.Sub(t.ruled) >= rulesLook {
		t.rules(now)
	}
}

// list lists the files that are open, if much has escaped or is dirty. It does so if Told, too:
// what the watcher knows may be lost by the end.
func (t *Tally) list(r escape.Reading) {
	seen := r.Escaped + r.Dirty
	if seen <= t.opened+slack() || len(t.sum.Open) >= openMost {
		return
	}
	t.opened = 2 * seen
	if pids, err := escape.Members(t.group); err == nil {
		t.sum.Open = opened(t.sum.Open, escape.Writables(pids), t.began)
	}
}

// take takes in what was read at the end of a moment.
func (t *Tally) take(m moment, r escape.Reading) {
	if m.wrote {
		t.sum.Writing.grew(m.since, m.now)
		t.sum.Paused = 0
	} else {
		t.sum.Paused += m.paused
	}
	if r.Sent > t.sum.Sent {
		t.sum.calling.grew(m.since, m.now)
	}
	if r.Processes > 0 {
		t.lived = m.read
	}
	estimated := r.Escaped + r.Cancelled
	m.escaped, t.most = estimated-min(estimated, t.most), max(estimated, t.most)
	for i := range t.sum.Devices {
		t.sum.Devices[i].see(m, r.Stats)
	}
	t.sum.Reading, t.sum.estimated, t.sum.Ended, t.at = r, estimated, m.now, m.read
	t.rest(m.now)
}

// uncharged is what was written and not charged on a disk with a limit; no more can have
// escaped. What was charged to a volume and to its disk counts once. The kernel's count of dirty data lags at times, so an estimate takes for escaped
// what is still on its way to the disk.
func (s *Sum) uncharged() uint64 {
	charged := func(n blkdev.Number) uint64 {
		if i := slices.IndexFunc(s.Devices, func(d Device) bool { return d.Device == n }); i >= 0 {
			return s.Devices[i].Charged.WrittenBytes
		}
		return 0
	}
	left := s.Written
	for _, d := range s.Devices {
		left -= min(left, s.upon.Own(d.Device, charged))
	}
	return left
}

// seen is what is known to have become of what was written, but for what the watcher has seen: it
// waits in memory, was cut off files, or was charged. upon is of all disks with charges.
func (s *Sum) seen(upon blkdev.Upon) uint64 {
	charged := map[blkdev.Number]uint64{}
	for _, at := range s.Stats {
		charged[at.Device] = at.WrittenBytes
	}
	all := s.Dirty + s.Cancelled
	for n := range charged {
		all += upon.Own(n, func(n blkdev.Number) uint64 { return charged[n] })
	}
	return all
}

// Without takes out bytes that the kernel has counted as written and that nobody has written:
// rests of folios (package partial). What was written of these later made nothing dirty that the
// kernel counts, and took its time.
func (s *Sum) Without(spare uint64) {
	if spare > 0 {
		s.Writing, s.spare = s.Writing.with(s.calling), spare
	}
	s.Written -= min(s.Written, spare)
	if !s.Told {
		s.Escaped = min(s.Escaped, s.uncharged())
	}
}

// pauses reports whether weir's pacer has paused the group, and whether its owner has.
func (t *Tally) pauses() (weirs, owners bool) {
	if t.cell == nil {
		return false, false
	}
	frozen, err := t.cell.Frozen()
	if err != nil {
		return false, false // a cell that is gone stops nobody
	}
	above, err := t.cell.FrozenAbove()
	return frozen, err == nil && above
}

// End reads the counters a last time. Processes have written at least this many bytes: parents
// know what their unseen children wrote.
func (t *Tally) End(ctx context.Context, written uint64) Sum {
	close(t.quit)
	<-t.done
	t.look(written)
	t.rules(t.at)
	for i := range t.sum.Devices {
		d := &t.sum.Devices[i]
		if c, err := blkdev.New("/").Counters(d.Device); err == nil {
			d.Disk = blkdev.Counters{Reads: c.Reads - t.disks[i].Reads, ReadBytes: c.ReadBytes - t.disks[i].ReadBytes,
				Writes: c.Writes - t.disks[i].Writes, WrittenBytes: c.WrittenBytes - t.disks[i].WrittenBytes}
		}
	}
	t.sum.Escaped = min(t.sum.Escaped, t.sum.uncharged())
	if t.sum.Told {
		t.tell(ctx)
	}
	if t.sum.Told {
		t.sum.Open = nil
	}
	for i := range t.sum.Open {
		t.sum.Open[i].place(ctx)
	}
	t.estimate.Close()
	return t.sum
}

// tell adds what the watcher has seen.
func (t *Tally) tell(ctx context.Context) {
	if t.asked != nil {
		<-t.asked
	}
	escaped, err := t.watcher.Escaped(t.id)
	if err == nil {
		t.sum.Escapes, err = t.watcher.Files(t.id, t.group.Hierarchy())
	}
	if t.sum.Told = err == nil; !t.sum.Told {
		return
	}
	t.sum.Escaped = 0
	for i := range t.sum.Devices {
		t.sum.Devices[i].Escaped = escapedOn(ctx, escaped, t.sum.Devices[i])
	}
	var disks []blkdev.Number
	for _, s := range t.sum.Stats {
		disks = append(disks, s.Device)
	}
	all := t.sum.seen(blkdev.New("/").Upon(ctx, disks))
	for n, bytes := range escaped {
		all += bytes
		if on := escape.Disks(ctx, n); slices.ContainsFunc(t.sum.Devices, func(d Device) bool { return on(d.Device) }) {
			t.sum.Escaped += bytes
		}
	}
	if t.sum.Left && t.sum.Written > all+slack() {
		t.sum.strayed = t.sum.Written - all
	}
	_ = t.watcher.Remove(t.id) // it ends with weir
}
