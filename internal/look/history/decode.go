package history

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
	"unique"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// errNoFrame is the error of bytes that no encoder has written.
var errNoFrame = errors.New("this is no frame")

// A decoder reads the frames of one block, in their order.
type decoder struct {
	began  time.Time
	want   func(def) bool // nil: all
	series []series
	wanted []int          // of series, by their numbers
	last   map[int]*point // those of wanted that are there
	names  int            // bytes of the names that were read
}

// namesMost bounds the names in a block, in bytes. A name that shares its beginning with the one before takes a few bytes
// of the file, and up to textMost of memory.
const namesMost = 128 << 20

func newDecoder(began time.Time, want func(def) bool) *decoder {
	return &decoder{began: began, want: want, last: map[int]*point{}}
}

// A frame is what happened up to one time.
type frame struct {
	at     time.Time
	window time.Duration
	points []*point // in the order of their definitions
}

// frame reads the next one. After an error the decoder is of no use.
func (d *decoder) frame(text []byte) (frame, error) {
	f, err := d.step(text)
	if err != nil {
		return frame{}, err
	}
	f.points = d.points()
	return f, nil
}

// points are those of the last frame that are wanted.
func (d *decoder) points() (all []*point) {
	for _, id := range d.wanted {
		if p := d.last[id]; p != nil {
			one := *p
			all = append(all, &one)
		}
	}
	return all
}

// step is frame without its points.
func (d *decoder) step(text []byte) (frame, error) {
	s := &scanner{rest: text}
	ms := s.signed()
	window := s.unsigned(math.MaxInt64 / uint64(time.Millisecond))
	if ms > 1<<50 || ms < -1<<50 { // 36,000 years
		return frame{}, errNoFrame
	}
	for range s.count(1) {
		of := s.def()
		if d.names += len(of.path) + len(of.target) + len(of.node) + len(of.below); d.names > namesMost {
			return frame{}, errNoFrame
		}
		one := series{} // one that is not wanted
		if d.want == nil || d.want(of) {
			d.wanted, one = append(d.wanted, len(d.series)), unique.Make(of)
		}
		d.series = append(d.series, one)
	}
	for _, p := range d.last { // who is not told of did nothing
		p.values, p.unknown = [valuesMost]uint64{}, false
	}
	next := 0
	for range s.count(2) {
		next = d.sample(s, next) + 1
	}
	if s.failed || len(s.rest) > 0 {
		return frame{}, errNoFrame
	}
	return frame{at: time.UnixMilli(d.began.UnixMilli() + ms), window: time.Duration(window) * time.Millisecond}, nil
}

// sample reads one, whose number is near next, and returns that.
func (d *decoder) sample(s *scanner, next int) (id int) {
	step := s.signed()
	flags := s.unsigned(flagGone<<1 - 1)
	if s.failed || step < int64(-next) || step >= int64(len(d.series)-next) {
		s.failed = true
		return 0
	}
	id = next + int(step)
	if flags&flagGone != 0 {
		delete(d.last, id)
		return id
	}
	p := &point{series: d.series[id], unknown: flags&flagUnknown != 0}
	for i := range p.values {
		if flags&(1<<i) != 0 {
			p.values[i] = unpack(s.unsigned(packedMost))
		}
	}
	if p.series != (series{}) {
		d.last[id] = p
	}
	return id
}

// A scanner reads numbers and texts; once it has failed, it reads zeros.
type scanner struct {
	rest   []byte
	failed bool
	names  namer
}

func (s *scanner) unsigned(most uint64) uint64 {
	v, n := binary.Uvarint(s.rest)
	return s.took(v, n, v <= most)
}

func (s *scanner) signed() int64 {
	v, n := binary.Varint(s.rest)
	return int64(s.took(uint64(v), n, true))
}

func (s *scanner) took(v uint64, n int, fits bool) uint64 {
	if s.failed = s.failed || n <= 0 || !fits; s.failed {
		return 0
	}
	s.rest = s.rest[n:]
	return v
}

// count reads how many things of at least some bytes follow: no more than there are bytes for.
func (s *scanner) count(least int) int {
	return int(s.unsigned(uint64(len(s.rest) / least)))
}

func (s *scanner) byte() byte {
	if s.failed = s.failed || len(s.rest) == 0; s.failed {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

func (s *scanner) text(last *string) string {
	same := int(s.unsigned(uint64(len(*last))))
	n := int(s.unsigned(uint64(textMost - same)))
	if s.failed = s.failed || n > len(s.rest); s.failed {
		return ""
	}
	*last = (*last)[:same] + string(s.rest[:n])
	s.rest = s.rest[n:]
	return *last
}

func (s *scanner) def() (d def) {
	d.kind = kind(s.byte())
	if d.kind < ofHost || d.kind > ofDevice {
		s.failed = true
	}
	if d.kind == ofGroup || d.kind == ofDevice {
		d.path, d.target = s.text(&s.names.path), s.text(&s.names.target)
	}
	if d.kind == ofDisk || d.kind == ofDevice {
		d.node = s.text(&s.names.node)
		d.number = blkdev.Number{Major: uint32(s.unsigned(math.MaxUint32)), Minor: uint32(s.unsigned(math.MaxUint32))}
	}
	switch d.kind {
	case ofDisk:
		d.below = s.text(new(string))
	case ofDevice:
		for _, k := range limit.Keys {
			if v := s.unsigned(math.MaxUint64); v > 1 {
				d.limit = d.limit.With(k, limit.PerSecond(v-1))
			}
		}
	case ofGroup, ofHost:
		flags := s.byte()
		d.pressure, d.memory, d.v1 = flags&flagPressure != 0, flags&flagMemory != 0, flags&flagV1 != 0
	}
	return d
}
