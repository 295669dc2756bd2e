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
	ids   map[def]int
	alive map[def]bool
}

func newEncoder(began time.Time) *encoder {
	return &encoder{began: began, ids: map[def]int{}, alive: map[def]bool{}}
}

// frame spells a frame:
//
//	when, in milliseconds since the block began (varint); how long, in milliseconds (uvarint)
//	how many definitions (uvarint), and they; how many samples, and they
//
// It changes nothing of the encoder: take does, once the frame is written.
func (e *encoder) frame(at time.Time, window time.Duration, points []point) []byte {
	b := binary.AppendVarint(nil, at.UnixMilli()-e.began.UnixMilli())
	b = binary.AppendUvarint(b, uint64(max(window, 0).Milliseconds()))
	now := make(map[def]bool, len(points))
	fresh := map[def]int{} // those without an id, and the ids that they get
	var defs, samples []byte
	nSamples := 0
	sample := func(id int, flags uint64, values []uint64) {
		nSamples++
		samples = binary.AppendUvarint(samples, uint64(id))
		samples = binary.AppendUvarint(samples, flags)
		for _, v := range values {
			if v != 0 {
				samples = binary.AppendUvarint(samples, v)
			}
		}
	}
	for i := range points {
		p := &points[i]
		now[p.def] = true
		id, known := e.ids[p.def]
		if !known {
			if id, known = fresh[p.def]; !known {
				id = len(e.ids) + len(fresh)
				fresh[p.def] = id
				defs = p.def.append(defs)
			}
		} else if p.idle() && e.alive[p.def] {
			continue // it is there, and did nothing
		}
		flags := uint64(0)
		for i, v := range p.values {
			if v != 0 {
				flags |= 1 << i
			}
		}
		if p.unknown {
			flags |= flagUnknown
		}
		sample(id, flags, p.values[:])
	}
	for d := range e.alive {
		if !now[d] {
			sample(e.ids[d], flagGone, nil)
		}
	}
	b = append(binary.AppendUvarint(b, uint64(len(fresh))), defs...)
	return append(binary.AppendUvarint(b, uint64(nSamples)), samples...)
}

// take notes what a frame has defined. It goes through points as frame does.
func (e *encoder) take(points []point) {
	clear(e.alive)
	for i := range points {
		d := points[i].def
		if _, known := e.ids[d]; !known {
			e.ids[d] = len(e.ids)
		}
		e.alive[d] = true
	}
}

// append spells a definition: its kind, and what that kind has.
func (d def) append(b []byte) []byte {
	b = append(b, byte(d.kind))
	if d.kind == ofGroup || d.kind == ofDevice {
		b = appendText(appendText(b, d.path), d.target)
	}
	if d.kind == ofDisk || d.kind == ofDevice {
		b = appendText(b, d.node)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(d.number.Major)), uint64(d.number.Minor))
	}
	switch d.kind {
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

func appendText(b []byte, s string) []byte {
	s = s[:min(len(s), textMost)]
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// spelt is a limit: 0 for none, else one more than its number.
func spelt(r limit.Rate) uint64 {
	n, bound := r.Number()
	if !bound {
		return 0
	}
	return min(n, 1<<62) + 1
}
