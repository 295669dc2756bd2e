package grpc

import (
	"errors"
	"fmt"
	"sync"
)

// A headerDecoder reads header blocks (HPACK, RFC 7541). It is written here because the tables of
// golang.org/x/net/http2/hpack are made at each start of weir, which takes as long as ten packages;
// tests compare the two.
type headerDecoder struct {
	block   []byte // what is left of the block that is read
	entries []Pair // the dynamic table, the newest first
	max     uint64 // its largest size; the other side can make it smaller
}

const (
	headerTableMax = 4096     // SETTINGS_HEADER_TABLE_SIZE, as weir does not set it
	headerListMax  = 64 << 10 // bytes of the fields of a block, more than that of an error's text
	entryOverhead  = 32       // of an entry of the table (RFC 7541, section 4.1)
)

var errHeader = errors.New("the header block is damaged")

// decode reads a block's fields.
func (d *headerDecoder) decode(block []byte) (fields []Pair, err error) {
	d.block = block
	size := 0
	for len(d.block) > 0 {
		f, is, err := d.field()
		if err != nil {
			return nil, err
		}
		if !is {
			continue
		}
		if size += len(f.Name) + len(f.Value); size > headerListMax {
			return nil, fmt.Errorf("the header has more than %d bytes", headerListMax)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// field reads one representation (RFC 7541, section 6). is is false if it is no field.
func (d *headerDecoder) field() (f Pair, is bool, err error) {
	switch first := d.block[0]; {
	case first&0x80 != 0: // indexed
		n, err := d.number(7)
		if err != nil {
			return f, false, err
		}
		f, err = d.at(n)
		return f, true, err
	case first&0xc0 == 0x40: // with incremental indexing
		f, err = d.literal(6)
		if err == nil {
			d.add(f)
		}
		return f, true, err
	case first&0xe0 == 0x20: // a size of the table
		n, err := d.number(5)
		if err == nil && n > headerTableMax {
			err = errHeader
		}
		d.max = n
		d.evict()
		return f, false, err
	default: // without indexing, or never indexed
		f, err = d.literal(4)
		return f, true, err
	}
}

// literal reads a field whose name may be in the table, by a number of that many bits.
func (d *headerDecoder) literal(bits int) (f Pair, err error) {
	n, err := d.number(bits)
	if err != nil {
		return f, err
	}
	if n == 0 {
		f.Name, err = d.text()
	} else {
		f, err = d.at(n)
	}
	if err != nil {
		return f, err
	}
	f.Value, err = d.text()
	return f, err
}

// at is the field with a number: of the static table, or of the dynamic one behind it.
func (d *headerDecoder) at(n uint64) (Pair, error) {
	switch own := n - uint64(len(staticTable)) - 1; {
	case n == 0:
		return Pair{}, errHeader
	case n <= uint64(len(staticTable)):
		return staticTable[n-1], nil
	case own < uint64(len(d.entries)):
		return d.entries[own], nil
	}
	return Pair{}, errHeader
}

func (d *headerDecoder) add(f Pair) {
	d.entries = append([]Pair{f}, d.entries...)
	d.evict()
}

// evict drops the oldest entries of a table that is too large.
func (d *headerDecoder) evict() {
	size := uint64(0)
	for i, f := range d.entries {
		if size += uint64(len(f.Name)+len(f.Value)) + entryOverhead; size > d.max {
			d.entries = d.entries[:i]
			return
		}
	}
}

// number reads a number that begins with the last bits of a byte (RFC 7541, section 5.1).
func (d *headerDecoder) number(bits int) (n uint64, err error) {
	if len(d.block) == 0 {
		return 0, errHeader
	}
	most := uint64(1)<<bits - 1
	n = uint64(d.block[0]) & most
	d.block = d.block[1:]
	if n < most {
		return n, nil
	}
	const shiftMost = 28 // nothing is as large
	for shift := 0; shift <= shiftMost && len(d.block) > 0; shift += 7 {
		b := d.block[0]
		d.block = d.block[1:]
		n += uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			return n, nil
		}
	}
	return 0, errHeader
}

// text reads a text (RFC 7541, section 5.2).
func (d *headerDecoder) text() (string, error) {
	if len(d.block) == 0 {
		return "", errHeader
	}
	coded := d.block[0]&0x80 != 0
	n, err := d.number(7)
	if err != nil || n > uint64(len(d.block)) {
		return "", errHeader
	}
	text := d.block[:n]
	d.block = d.block[n:]
	if !coded {
		return string(text), nil
	}
	return codes().decode(text)
}

// A huffman has, for codes of each length, the first code and where its byte is in order.
type huffman struct {
	first, count [codeMost + 1]uint32
	begin        [codeMost + 1]int
	order        []int // bytes by their codes
}

const (
	codeMost  = 30  // bits of the longest code
	endOfText = 256 // a code that must not come
)

// codes are those of HPACK. Whoever reads no coded text need not make them.
var codes = sync.OnceValue(newHuffman)

func newHuffman() *huffman {
	h := &huffman{}
	code := uint32(0)
	for bits := 1; bits <= codeMost; bits++ {
		code <<= 1
		h.first[bits], h.begin[bits] = code, len(h.order)
		for b, length := range huffmanBits {
			if int(length) == bits {
				h.order = append(h.order, b)
				h.count[bits]++
				code++
			}
		}
	}
	return h
}

// decode reads a coded text. It is filled up to whole bytes with ones, fewer than eight.
func (h *huffman) decode(coded []byte) (string, error) {
	var text []byte
	code, bits, ones := uint32(0), 0, true
	for _, b := range coded {
		for i := 7; i >= 0; i-- {
			bit := uint32(b>>i) & 1
			code, bits, ones = code<<1|bit, bits+1, ones && bit == 1
			if bits > codeMost {
				return "", errHeader
			}
			if at := code - h.first[bits]; code >= h.first[bits] && at < h.count[bits] {
				value := h.order[h.begin[bits]+int(at)]
				if value == endOfText {
					return "", errHeader
				}
				text = append(text, byte(value))
				code, bits, ones = 0, 0, true
			}
		}
	}
	if bits > 7 || !ones {
		return "", errHeader
	}
	return string(text), nil
}

// appendField adds a field that is in no table, and that nobody puts into one.
func appendField(block []byte, f Pair) []byte {
	block = append(block, 0x10)
	for _, text := range []string{f.Name, f.Value} {
		n := len(text)
		if n < 0x7f {
			block = append(block, byte(n))
		} else {
			block = append(block, 0x7f)
			for n -= 0x7f; n >= 0x80; n >>= 7 {
				block = append(block, byte(n)|0x80)
			}
			block = append(block, byte(n))
		}
		block = append(block, text...)
	}
	return block
}
