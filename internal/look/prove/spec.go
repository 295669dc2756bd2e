package prove

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
)

// Paths are the ways of an I/O that a proof goes if no others are named; Async, which
// is direct with 32 operations under way, is measured when it is named.
var Paths = []load.Path{load.Direct, load.Sync, load.Buffered, load.Mapped}

// A Test is one row of a proof, before it is measured.
type Test struct {
	Path   load.Path
	Key    limit.Key // the rate that is tried
	Rate   uint64    // its limit per second
	Random bool
	Depth  int // operations under way at once
	// Cached says that the file system does direct writes through the page cache.
	Cached bool
	Block  int // bytes an operation
	Size   int64
	Pace   int64         // bytes a second that the load keeps below; 0: none
	Warm   time.Duration // left out: the throttle's first slices; writeback's beginning
	For    time.Duration
}

// String names the row: "direct write", "random direct read".
func (t Test) String() string {
	words := map[load.Path]string{load.Sync: "synchronous"}
	path := words[t.Path]
	if path == "" {
		path = string(t.Path)
	}
	name := path + " " + t.Key.Direction()
	if t.Depth > 1 {
		name += fmt.Sprintf(" ×%d", t.Depth)
	}
	if t.Random {
		name = "random " + name
	}
	return name
}

// Delayed reports that a write is done before it reaches the disk.
func (t Test) Delayed() bool {
	return !t.Key.IsRead() && (t.Path == load.Buffered || t.Cached)
}

const (
	// warm leaves out the throttle's first slice, which is a burst, and its second and
	// third, which pay for it.
	warm = 300 * time.Millisecond
	// warmDelayed leaves out the beginning of writeback, in large requests.
	warmDelayed = 1500 * time.Millisecond

	page       = 4 << 10
	blockMax   = 256 << 10
	asyncDepth = 32
	mega       = 1 << 20
)

// Options say what to try, and how.
type Options struct {
	Limit   limit.Limit // what the load is bound by: its numbers are tried
	Paths   []load.Path
	For     time.Duration
	Logical int   // bytes of the device's logical block
	Room    int64 // bytes that may be used on the disk
	// Drains says that dirty data after a row has to be written at the limit, so there must be
	// little of it.
	Drains bool
	// Cached says that the file system does direct writes through the page cache.
	Cached bool
	// Entangled says that a process that writes to data under writeback writes the file back
	// itself, and waits for that. The kernel then charges its writes to it on v1 too, and
	// writing the file once can take as long as the limit needs for it.
	Entangled bool
}

// Plan lists the rows for the rates of a limit that are numbers, and notes what is left out,
// one sentence each.
func Plan(o Options) (tests []Test, notes []string) {
	for _, k := range []limit.Key{limit.WBPS, limit.RBPS, limit.WIOPS, limit.RIOPS} {
		rate, bound := o.Limit.Get(k).Number()
		if !bound {
			continue
		}
		for _, p := range o.Paths {
			if p == load.Sync && k.IsRead() {
				continue // a read is waited for in any case
			}
			direct := p == load.Direct || p == load.Async
			cached := direct && o.Cached && !k.IsRead()
			if k.IsOps() && (!direct || cached) {
				if len(o.Paths) == 1 || cached {
					notes = append(notes, fmt.Sprintf("%s %s of %s: not tried; the page cache merges many operations into one request, so their number says nothing",
						p, k.Direction(), o.Limit.Get(k).Format(k)))
				}
				continue
			}
			t, note := o.test(p, k, rate)
			if note != "" {
				notes = append(notes, note)
				continue
			}
			if t.Pace > 0 {
				notes = append(notes, fmt.Sprintf("%s %s of %s: tried with %s/s, so that the writer does not overtake the writeback",
					p, k.Direction(), o.Limit.Get(k).Format(k), limit.FormatMeasured(float64(t.Pace))))
			}
			tests = append(tests, t)
		}
	}
	return tests, notes
}

func (o Options) test(p load.Path, k limit.Key, rate uint64) (t Test, note string) {
	t = Test{Path: p, Key: k, Rate: rate, Warm: warm, For: o.For, Cached: o.Cached && !k.IsRead() && (p == load.Direct || p == load.Async)}
	if p == load.Async {
		t.Depth = asyncDepth
	}
	if t.Delayed() {
		t.Warm = warmDelayed
	}
	other, _ := o.Limit.Get(sister(k)).Number()
	if k.IsOps() {
		t.Random = true
		t.Block = max(page, o.Logical)
		if other > 0 && rate*uint64(t.Block) > other-other/10 {
			t.Block = o.Logical
		}
		if other > 0 && rate*uint64(t.Block) > other-other/10 {
			return t, fmt.Sprintf("%s %s: not tried; with blocks of %d bytes, the limit of %s is reached first",
				k.Direction(), o.Limit.Get(k).Format(k), t.Block, o.Limit.Get(sister(k)).Format(sister(k)))
		}
	} else {
		t.Block = blockFor(rate, o.Logical)
		if p == load.Mapped {
			t.Block = max(t.Block, page)
		}
		for other > 0 && uint64(t.Block) < rate/other*5/4 && t.Block < mega {
			t.Block *= 2 // so that the operations' own limit is not reached first
		}
		if other > 0 && uint64(t.Block) < rate/other {
			return t, fmt.Sprintf("%s %s: not tried; with blocks of %d bytes, the limit of %s is reached first",
				k.Direction(), o.Limit.Get(k).Format(k), t.Block, o.Limit.Get(sister(k)).Format(sister(k)))
		}
	}
	t.Size = o.size(t)
	if o.Entangled && t.Delayed() {
		t.pace(o)
	}
	return t, ""
}

// pace keeps the writer from a second round, where the disk has room for enough more
// than the limit to tell that it is not held.
func (t *Test) pace(o Options) {
	row := (t.Warm + t.For).Milliseconds()
	most := int64(min(t.Rate, 1<<40)) / 1000 * row
	size := min(4*most, 512*mega, o.Room)
	if o.Drains {
		size = min(most*3/2, size)
	}
	if size < most*3/2 {
		return
	}
	t.Size = size / int64(t.Block) * int64(t.Block)
	t.Pace = t.Size * 9 / 10 * 1000 / row
}

// sister is the rate of the same direction that counts the other thing.
func sister(k limit.Key) limit.Key {
	return [...]limit.Key{limit.RBPS: limit.RIOPS, limit.WBPS: limit.WIOPS, limit.RIOPS: limit.RBPS, limit.WIOPS: limit.WBPS}[k]
}

// blockFor is a size of operation of which a slice of 100 ms holds ten, where one of
// at least a page can: smaller ones make work for a file system instead of a disk.
func blockFor(rate uint64, logical int) int {
	block := logical
	for block < blockMax && uint64(block)*2*100 <= rate {
		block *= 2
	}
	// A page, if then some twenty a window are left.
	if block < page && rate >= 5*page {
		block = page
	}
	return block
}

// size bounds how much of the disk is used. Data to read must last for the row, so that each
// byte is read once; data to write is overwritten again and again.
func (o Options) size(t Test) int64 {
	perSec := int64(min(t.Rate, 1<<40))
	if t.Key.IsOps() {
		perSec *= int64(t.Block)
	}
	row := (t.Warm + t.For).Milliseconds()
	var size int64
	switch {
	case t.Random:
		size = 64 * mega
	case t.Key.IsRead():
		size = max(8*mega, perSec/1000*row*5/4)
	case t.Delayed() && o.Drains:
		size = min(max(mega, perSec*2), 256*mega)
	case t.Delayed():
		size = min(max(8*mega, perSec/1000*row*2), 512*mega)
	default:
		size = min(max(4*mega, perSec), 64*mega)
	}
	size = min(size, o.Room)
	return max(size/int64(t.Block), 1) * int64(t.Block)
}

// Duration is how long rows take, one after the other.
func Duration(tests []Test) time.Duration {
	const around = 300 * time.Millisecond // to make a group, and for the disk to be quiet
	var sum time.Duration
	for _, t := range tests {
		sum += t.Warm + t.For + around
	}
	return sum
}

// Shorten cuts rows to fit a time, but none below two seconds, which give ±5 %.
func Shorten(tests []Test, most time.Duration) []Test {
	const least = 2 * time.Second
	over := Duration(tests) - most
	if over <= 0 {
		return tests
	}
	cut := over/time.Duration(len(tests)) + time.Millisecond
	tests = slices.Clone(tests)
	for i := range tests {
		tests[i].For = max(min(least, tests[i].For), tests[i].For-cut)
	}
	return tests
}
