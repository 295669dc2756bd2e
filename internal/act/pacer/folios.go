package pacer

import (
	"errors"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/process"
)

// folios tells what processes have written, where write_bytes counts folios whole that they
// have written in part: see package partial. On v1 nothing is loaded before that may matter.
type folios struct {
	load   func() (Parts, error) // errLoading: it is asked again; nil: it was tried
	late   time.Duration         // until when the group waits for that; 0: nobody has asked
	count  Counter               // nil: what write_bytes says is counted
	excess float64               // in write_bytes beyond what calls have written, before there was a count
	lack   float64               // what calls have written beyond write_bytes, likewise
	spare  float64               // was not counted since, and not cut off
	all    float64               // was not counted since
	early  float64               // was not counted, and is not in write_bytes yet
	partly bool                  // what was written last was parts of folios

	// Of excess, what was a part is as large a part as is seen of what is written next.
	doubt, more, seen float64
	asked             time.Duration // when it was asked
	told              time.Duration // since when more tells; 0: it does not
}

// Parts count with BPF what of folios groups have written: see package partial.
type Parts interface {
	Add(g cgroupfs.Group) (Counter, error)
	// AddEscapes is Add for what is in files of other groups, on the disks that disks returns.
	AddEscapes(g cgroupfs.Group, disks func() []blkdev.Number) (Counter, error)
	Close() error
}

// A Counter counts for one group. Spare returns how many bytes write_bytes has counted too much
// since the last call; less than 0: what it had counted too much before has been written.
type Counter interface {
	Spare() (bytes float64, err error)
	Before(bytes float64)
	Close() error
}

const (
	// From an excess of a tenth of a second of the limit on, but between doubtLeast and doubtMost,
	// it is to be told what it is: stores into a mapping and the like, or folios that were written
	// in part. (What a call has written counts as sent when it returns.) So is a lack of as much:
	// it can be the rest of folios that are dirty, which write_bytes never counts.
	doubtLeast, doubtMost = 256 << 10, 4 << 20
	// seenLeast is the excess that tells what the doubt was about.
	seenLeast = 64 << 10
	// callMost is what a call makes dirty at most beyond the bytes that it writes, where pages
	// are of 4 KiB: parts of its first and its last one.
	callMost = 4096
	// toldMost is for how long a group is paused at most until that which tells is loaded, which
	// takes 50 to 95 ms, and longer on a busy machine.
	toldMost = 500 * time.Millisecond
	// doubtFor is for how long nothing that tells may be written: then all of the doubt was.
	doubtFor = time.Second
	// callFor is how long an excess must last before it tells: what a call under way has made dirty
	// looks like one until the call has returned.
	callFor = 250 * time.Millisecond
)

// written returns what was made dirty and not cut off again, in bytes. It can be less than 0.
func (f *folios) written(more process.IO, now time.Duration) float64 {
	wrote, cut := float64(more.WriteBytes), float64(more.CancelledWriteBytes)
	excess := wrote - float64(more.WChar) - callMost*float64(more.SysCW)
	if f.count == nil {
		f.excess, f.lack = max(0, f.excess+excess), max(0, f.lack+float64(more.WChar)-wrote)
		return wrote - cut
	}
	spare, err := f.count.Spare()
	if err != nil {
		return wrote - cut
	}
	// What has become dirty since write_bytes was read is in it the next time. What is not in it
	// then is of processes that nobody has counted, and pays for nothing that others write.
	fresh := max(0, spare)
	spare += f.early
	over := max(0, spare-wrote)
	spare, f.early = spare-over, min(over, fresh)
	// A folio that is cut off a file counts whole as well.
	f.spare, f.all = f.spare+spare, f.all+spare
	if wrote > 0 || spare != 0 {
		f.partly = wrote-spare < wrote/2 || spare < 0
	}
	uncounted := min(cut, max(0, f.spare))
	f.spare -= uncounted
	return wrote - spare - (cut - uncounted) + f.judge(excess, spare, now)
}

// judge returns how much of the doubt was written.
func (f *folios) judge(excess, spare float64, now time.Duration) (wrote float64) {
	if f.doubt == 0 {
		return 0
	}
	f.more, f.seen = f.more+excess, f.seen+spare
	if f.seen < 0 { // so much of what is in doubt has been written since, and is counted
		filled := min(f.doubt, -f.seen)
		f.doubt, f.seen = f.doubt-filled, 0
		f.spare, f.all = f.spare+filled, f.all+filled
	}
	if f.more < seenLeast {
		f.told = 0
	} else if f.told == 0 {
		f.told = now
	}
	if f.told == 0 && now-f.asked < doubtFor || f.told != 0 && now-f.told < callFor {
		return 0
	}
	wrote = f.doubt
	if f.more >= seenLeast {
		wrote *= 1 - min(1, max(0, f.seen/f.more))
	}
	f.spare, f.all = f.spare+f.doubt-wrote, f.all+f.doubt-wrote
	f.count.Before(-wrote)
	f.doubt = 0
	return wrote
}

// doubts reports whether it is to be told what an excess or a lack is.
func (f *folios) doubts(bytesPerSec float64, now time.Duration) bool {
	if f.load == nil || max(f.excess, f.lack) < min(max(bytesPerSec/10, doubtLeast), doubtMost) {
		return false
	}
	_, err := f.load()
	if !errors.Is(err, errLoading) {
		return true
	}
	if f.late == 0 {
		f.late = now + toldMost
	}
	return now < f.late // after that folios count whole until it is told
}

// start begins to count, and returns what was counted and is in doubt now.
func (f *folios) start(now time.Duration, begin func(Parts) (Counter, error)) (doubt float64, err error) {
	w, err := f.load()
	if errors.Is(err, errLoading) {
		return 0, err
	}
	f.load = nil
	if err != nil {
		return 0, nil
	}
	count, err := begin(w)
	if err != nil {
		return 0, nil
	}
	// What calls have written beyond write_bytes is in folios that were dirty: no part of them is in doubt.
	f.count, f.doubt, f.asked = count, max(0, f.excess-f.lack), now
	f.count.Before(f.doubt)
	return f.doubt, nil
}

func (f *folios) close() {
	if f.count != nil {
		_ = f.count.Close() // it ends with the pacer
	}
}

// A doubtful meter counts folios.
type doubtful interface {
	parts() *folios
	// tell has it told what is in doubt, and returns what of that the bucket has paid for.
	tell(now time.Duration) (paid float64, err error)
}

func (m *written) parts() *folios { return &m.folios }
func (m *escaped) parts() *folios { return &m.folios }

func (m *written) tell(now time.Duration) (paid float64, err error) {
	paid, err = m.folios.start(now, func(w Parts) (Counter, error) { return w.Add(m.limited) })
	m.ledger.spend(min(paid, m.ledger.paid[0]+m.ledger.paid[1]))
	return paid, err
}

// doubts reports whether it is to be told what the processes have written.
func (p *paced) doubts(now time.Duration) bool {
	m, is := p.meter.(doubtful)
	return is && m.parts().doubts(p.bucket.rate, now)
}

// tell has it told what the paused processes have written, if that is in doubt. told is false
// where that which tells is being loaded: they stay paused until it is there, as what they write
// meanwhile would be in doubt as well.
func (p *paced) tell(now time.Duration) (told bool) {
	if !p.doubts(now) {
		return true
	}
	m := p.meter.(doubtful)
	back, err := m.tell(clockNow())
	if err != nil {
		p.waits = max(p.waits, m.parts().late)
		return false
	}
	p.bucket.take(-back)
	return true
}
