package pacer

import (
	"runtime"
	"time"

	"github.com/weir-io/weir/internal/linux/process"
)

// A watch is for processes that write what the bucket has in less time than it takes to
// sleep: the pacer stays awake and looks at who writes most, again and again. It stops them
// while they write, where that is seen: a write ends whole, and a read that is interrupted
// can come back short (the kernel's of /dev/zero does).

const (
	// watchMost and watchLeast are how long that lasts at most, momentMost how long it takes at
	// most to see that somebody writes just now.
	watchMost  = 400 * time.Microsecond
	watchLeast = 30 * time.Microsecond
	momentMost = 200 * time.Microsecond
)

// alone is set where the pacer has the only processor: nobody writes while it looks.
var alone = runtime.NumCPU() == 1

// writer is who writes most, and how many do; nil: it cannot be watched.
func (p *paced) writer() (of process.Counter, writers int) {
	if m, is := p.meter.(*written); is && !alone {
		return m.sum.Busiest()
	}
	return nil, 0
}

// spends watches processes that have just been let go, and reports whether they have written
// what the bucket has.
func (p *paced) spends() bool {
	of, writers := p.writer()
	if of == nil || p.lasts(p.fast) > watchMost {
		return false
	}
	return p.watch(of, p.bucket.level/float64(max(1, writers)), watchMost)
}

// writes waits until one of them writes, and reports whether that was seen, or cannot be.
func (p *paced) writes() bool {
	of, _ := p.writer()
	return of == nil || p.watch(of, 0, momentMost)
}

// watch waits until a writer has written some bytes more, but no longer than so long. Where
// it has written nothing (it has no processor, or does something else) the next time is shorter.
func (p *paced) watch(of process.Counter, bytes float64, most time.Duration) (reached bool) {
	moved := func(io process.IO) uint64 { return io.WriteBytes }
	if m, is := p.meter.(*written); is && m.folios.partly { // it moves by whole folios, and then not at all
		moved = func(io process.IO) uint64 { return io.WChar }
	}
	io, err := of.IO()
	from, began := moved(io), clockNow()
	until := began + max(most-p.vain, watchLeast)
	for now := began; err == nil && now < until; now = clockNow() {
		if io, err = of.IO(); moved(io) > from && float64(moved(io)-from) >= bytes {
			p.vain = 0
			return true
		}
	}
	if p.vain = min(p.vain+watchMost/4, watchMost); moved(io) > from {
		p.vain = 0
	}
	return false
}
