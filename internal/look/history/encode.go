package history

import (
	"encoding/binary"
	"time"

	"github.com/weir-io/weir/internal/limit"
)

// Flags of a sample, above the bits that say which values follow.
const (
	flagUnknown = 1 << valuesMost       // no rates are known
	flagGone    = 1 << (valuesMost + 1) // the series has ended; no values follow
)

// Flags of a group's or the host's definition.
const (
	flagPressure = 1
	flagMemory   = 2
	flagV1       = 4
)

// An encoder spells frames for one block, of which it knows the series.
type encoder struct {
	began time.Time // of the block
	ids   map[series]int
	known []series // by id
	last  []int    // ids of the last frame, in its order
	at    []int    // the places in last, by id; -1: it was not there

	// Of the frame that was spelt, and not taken yet:
	next  []int
	fresh []series // whose ids follow those of known
}

func newEncoder(began time.Time) *encoder { return &encoder{began: began, ids: map[series]int{}} }

// find looks a series up that is mostly at the same place as in the frame before: to compare it
// with that one takes a tenth of a look into a map.
func (e *encoder) find(s series, hint int) (id, at int, known bool) {
	if hint < len(e.last) && e.known[e.last[hint]] == s {
		return e.last[hint], hint, true
	}
	if id, known = e.ids[s]; !known {
		return 0, -1, false
	}
	return id, e.at[id], true
}

// frame spells a frame:
//
//	when, in milliseconds since the block began (varint); how long, in milliseconds (uvarint)
//	how many definitions (uvarint), and they; how many samples, and they
//
// A sample has the number of its series, less the one after the sample before (varint), flags with a
// bit for each value that is not 0 (uvarint), and these (uvarint, see pack). The frame counts for
// the next one once it is taken.
func (e *encoder) frame(at time.Time, window time.Duration, points []point) []byte {
	s := spelling{}
	e.next, e.fresh = e.next[:0], e.fresh[:0]
	fresh := map[series]int{} // those without an id, and the ids that they get
	there := make([]bool, len(e.at))
	hint := 0
	for i := range points {
		p := &points[i]
		id, was, known := e.find(p.series, hint)
		if !known {
			if id, known = fresh[p.series]; !known {
				id = len(e.ids) + len(fresh)
				fresh[p.series] = id
				e.fresh = append(e.fresh, p.series)
				s.define(p.series.Value())
			}
		} else {
			there[id] = true
			if was >= 0 {
				hint = was + 1
			}
		}
		e.next = append(e.next, id)
		if was < 0 || !p.idle() { // else it is there as before, and did nothing
			s.sample(id, p)
		}
	}
	for _, id := range e.last {
		if !there[id] {
			s.gone(id)
		}
	}
	b := binary.AppendVarint(nil, at.UnixMilli()-e.began.UnixMilli())
	b = binary.AppendUvarint(b, uint64(max(window, 0).Milliseconds()))
	b = append(binary.AppendUvarint(b, uint64(len(fresh))), s.defs...)
	return append(binary.AppendUvarint(b, uint64(s.n)), s.samples...)
}

// take has the frame that was spelt last count.
func (e *encoder) take() {
	for _, id := range e.last {
		e.at[id] = -1
	}
	for _, s := range e.fresh {
		e.know(s)
	}
	e.last, e.next, e.fresh = e.next, e.last[:0], e.fresh[:0]
	for i, id := range e.last {
		e.at[id] = i
	}
}

// know gives a series the next id.
func (e *encoder) know(s series) {
	e.ids[s] = len(e.known)
	e.known, e.at = append(e.known, s), append(e.at, -1)
}

// A spelling is the definitions and samples of a frame.
type spelling struct {
	defs, samples []byte
	n             int // samples
	next          int // the number after the last one's, which the next one's mostly is
	names         namer
}

func (s *spelling) define(d def) { s.defs = d.append(s.defs, &s.names) }

func (s *spelling) begin(id int, flags uint64) {
	s.n++
	s.samples = binary.AppendVarint(s.samples, int64(id-s.next))
	s.next = id + 1
	s.samples = binary.AppendUvarint(s.samples, flags)
}

func (s *spelling) gone(id int) { s.begin(id, flagGone) }

func (s *spelling) sample(id int, p *point) {
	flags := uint64(0)
	for i, v := range p.values {
		if v != 0 {
			flags |= 1 << i
		}
	}
	if p.unknown {
		flags |= flagUnknown
	}
	s.begin(id, flags)
	for _, v := range p.values {
		if v != 0 {
			s.samples = binary.AppendUvarint(s.samples, pack(v))
		}
	}
}

// append spells a definition: its kind, and what that kind has.
func (d def) append(b []byte, n *namer) []byte {
	b = append(b, byte(d.kind))
	if d.kind == ofGroup || d.kind == ofDevice {
		b = appendText(appendText(b, &n.path, d.path), &n.target, d.target)
	}
	if d.kind == ofDisk || d.kind == ofDevice {
		b = appendText(b, &n.node, d.node)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(d.number.Major)), uint64(d.number.Minor))
	}
	switch d.kind {
	case ofDisk:
		b = appendText(b, new(string), d.below)
	case ofDevice:
		for _, k := range limit.Keys {
			b = binary.AppendUvarint(b, spelt(d.limit.Get(k)))
		}
	case ofGroup, ofHost:
		flags := byte(0)
		if d.pressure {
			flags |= flagPressure
		}
		if d.memory {
			flags |= flagMemory
		}
		if d.v1 {
			flags |= flagV1
		}
		b = append(b, flags)
	}
	return b
}

// textMost bounds a name, in bytes; what is longer is cut.
const textMost = 4096

// A namer has the last names of a frame, of which the next ones have a part.
type namer struct{ path, target, node string }

// appendText spells a name: how many bytes of the last one it begins with, and the others.
func appendText(b []byte, last *string, s string) []byte {
	s = s[:min(len(s), textMost)]
	same := 0
	for same < len(s) && same < len(*last) && s[same] == (*last)[same] {
		same++
	}
	*last = s
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(same)), uint64(len(s)-same))
	return append(b, s[same:]...)
}

// spelt is a limit: 0 for none, else one more than its number.
func spelt(r limit.Rate) uint64 {
	n, bound := r.Number()
	if !bound {
		return 0
	}
	return min(n, 1<<62) + 1
}
