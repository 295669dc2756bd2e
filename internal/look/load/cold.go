package load

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/pagecache"
)

// stretchMax is how much is read before it is evicted again: often enough to leave
// little behind in the memory of a limited group, rarely enough to cost nothing.
const stretchMax = 8 << 20

// A cold keeps a load's reads out of the page cache, and knows of each stretch of the
// file how much was cached nevertheless when the round began. What is read ahead during
// the round comes from the disk.
type cold struct {
	f      *os.File
	blocks uint64
	size   int64
	random bool
	alone  bool  // nothing is read ahead
	length int64 // of a stretch
	cached []float64
	now    int64 // the stretch that is read
	// forget takes the pages out of what the load itself has mapped.
	forget func() error
}

func newCold(j Job, f *os.File, forget func() error) *cold {
	c := &cold{f: f, blocks: uint64(j.Size) / uint64(j.Block), random: j.Random, alone: j.Random || j.Alone, forget: forget, length: stretchMax}
	c.size = int64(c.blocks) * int64(j.Block)
	c.cached = make([]float64, (c.size+c.length-1)/c.length)
	return c
}

// before is called before the n-th operation. It returns which share of the operation's
// stretch was in the cache when its round began, and whether finding that out, or
// evicting, took time.
func (c *cold) before(n uint64, at int64) (cached float64, worked bool, err error) {
	stretch := at / c.length
	switch {
	case n%c.blocks == 0:
		worked, err = true, c.round(n == 0)
	case stretch != c.now && !c.random:
		// From the stretch before: a folio may have lain across the two, and a folio
		// goes as a whole or not at all.
		worked, err = true, c.evict(max(c.now-1, 0)*c.length, (c.now+1)*c.length)
	}
	c.now = stretch
	return c.cached[stretch], worked, err
}

// round begins one. The kernel drops no part of a page, so that the file's last one
// takes a range to the end.
func (c *cold) round(first bool) error {
	if first && c.alone {
		if err := unix.Fadvise(int(c.f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		if err := c.evict(0, 0); err != nil {
			return err
		}
		if cached, err := c.look(); err != nil || !cached || try == evictTries {
			return err
		}
		time.Sleep(evictPause)
	}
}

// A page that the kernel is still reading ahead cannot be evicted; a moment later it can.
const (
	evictTries = 3
	evictPause = 2 * time.Millisecond
)

// look finds out how much of each stretch is cached, and whether any of it is.
func (c *cold) look() (cached bool, err error) {
	for i := range c.cached {
		from := int64(i) * c.length
		length := min(c.length, c.size-from)
		r, err := pagecache.Resident(c.f, from, length)
		if err != nil {
			return false, err
		}
		c.cached[i] = min(float64(r.Cached)/float64(length), 1)
		cached = cached || r.Cached > 0
	}
	return cached, nil
}

// evict takes a range out of the cache; to 0 means all of the file.
func (c *cold) evict(from, to int64) error {
	if err := c.forget(); err != nil {
		return err
	}
	return pagecache.Drop(c.f, from, max(to-from, 0))
}
