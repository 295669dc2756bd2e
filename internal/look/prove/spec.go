package prove

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/fault"
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

// An Omission is a kind of I/O that is left out of the rows.
type Omission struct {
	Key  limit.Key // the rate that it would have tried
	What string    // "buffered write of 100 ops/s"
	Why  string
	Do   fault.Do // what can be done so that a row tries the rate
}

func (o Omission) String() string { return o.What + ": not tried; " + o.Why }

// Plan lists the rows for the rates of a limit that are numbers, and what is left out of them. Each
// of these rates has a row or an omission.
func Plan(o Options) (tests []Test, omitted []Omission) {
	for _, k := range []limit.Key{limit.WBPS, limit.RBPS, limit.WIOPS, limit.RIOPS} {
		rate, bound := o.Limit.Get(k).Number()
		if !bound {
			continue
		}
		before := len(tests) + len(omitted)
		for _, p := range o.Paths {
			if p == load.Sync && k.IsRead() {
				continue // a read is waited for in any case
			}
			direct := p == load.Direct || p == load.Async
			cached := direct && o.Cached && !k.IsRead()
			if k.IsOps() && (!direct || cached) {
				if cached {
					omitted = append(omitted, o.merged(string(p)+" ", k, fault.OtherSystem))
				}
				continue
			}
			t, why := o.test(p, k, rate)
			if why != "" {
				omitted = append(omitted, Omission{k, k.Direction() + " " + o.Limit.Get(k).Format(k), why, fault.ProveAlone})
				continue
			}
			tests = append(tests, t)
		}
		if before < len(tests)+len(omitted) {
			continue
		}
		if k.IsOps() {
			omitted = append(omitted, o.merged(o.named(), k, fault.AddDirect))
		} else {
			omitted = append(omitted, Omission{k, o.named() + "read of " + o.Limit.Get(k).Format(k), "only writes are synchronous", fault.AddDirect})
		}
	}
	return tests, omitted
}

// merged is the omission of operations that go through the page cache.
func (o Options) merged(path string, k limit.Key, do fault.Do) Omission {
	return Omission{k, path + k.Direction() + " of " + o.Limit.Get(k).Format(k), "the page cache merges many operations into one request, so their number says nothing", do}
}

// named is the only path that is to be tried; empty: there are several.
func (o Options) named() string {
	if len(o.Paths) == 1 {
		return string(o.Paths[0]) + " "
	}
	return ""
}

func (o Options) test(p load.Path, k limit.Key, rate uint64) (t Test, why string) {
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
			return t, o.otherFirst(t)
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
			return t, o.otherFirst(t)
		}
	}
	t.Size = o.size(t)
	if o.Entangled && t.Delayed() {
		t.pace(o)
	}
	return t, ""
}

// otherFirst is why a row cannot reach its limit.
func (o Options) otherFirst(t Test) string {
	other := sister(t.Key)
	return fmt.Sprintf("with blocks of %d bytes, the limit of %s is reached first", t.Block, o.Limit.Get(other).Format(other))
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

// around is how long it takes to make a row's group, and for the disk to be quiet.
const around = 300 * time.Millisecond

// windowLeast is how long a row is measured at least if rows are cut: that gives ±5 %.
const windowLeast = 2 * time.Second

// Duration is how long rows take, one after the other.
func Duration(tests []Test) time.Duration {
	var sum time.Duration
	for _, t := range tests {
		sum += t.Warm + t.For + around
	}
	return sum
}

// least is how long a row takes that is cut.
func (t Test) least() time.Duration { return t.Warm + min(windowLeast, t.For) + around }

// Shorten cuts rows to fit a time, but none below windowLeast.
func Shorten(tests []Test, most time.Duration) []Test {
	tests = slices.Clone(tests)
	for {
		over := Duration(tests) - most
		long := 0 // rows that can be cut
		for _, t := range tests {
			if t.For > windowLeast {
				long++
			}
		}
		if over <= 0 || long == 0 {
			return tests
		}
		cut := over/time.Duration(long) + time.Millisecond
		for i := range tests {
			if tests[i].For > windowLeast {
				tests[i].For = max(windowLeast, tests[i].For-cut)
			}
		}
	}
}
