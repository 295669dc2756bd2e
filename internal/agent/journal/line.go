package journal

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"

	"github.com/weir-io/weir/internal/base/rawtext"
)

// A line is a checksum of 8 hexadecimal digits, a blank, the entry as JSON, and a newline.
const sumDigits = 8

// castagnoli is the table of CRC-32C, made when it is used: package hash/crc32 makes tables at each
// start of weir, which reads no journal.
var castagnoli = sync.OnceValue(func() *[256]uint32 {
	var table [256]uint32
	for i := range table {
		sum := uint32(i)
		for range 8 {
			sum = sum>>1 ^ 0x82f63b78*(sum&1)
		}
		table[i] = sum
	}
	return &table
})

// sumOf is the CRC-32C of a text.
func sumOf(text []byte) uint32 {
	table, sum := castagnoli(), ^uint32(0)
	for _, b := range text {
		sum = sum>>8 ^ table[byte(sum)^b]
	}
	return ^sum
}

// encode makes a line.
func encode(e Entry) ([]byte, error) {
	text, err := rawtext.Marshal(e.bounded())
	if err != nil {
		return nil, err
	}
	if len(text) > lineMost-sumDigits-2 {
		e.Changes = nil // names of devices that are all escapes
		if text, err = rawtext.Marshal(e.bounded()); err != nil {
			return nil, err
		}
	}
	return fmt.Appendf(nil, "%0*x %s\n", sumDigits, sumOf(text), text), nil
}

// decode reads a line without its newline; false: it is none, or was torn.
func decode(line []byte) (e Entry, ok bool) {
	sum, text, is := bytes.Cut(line, []byte{' '})
	if !is || len(sum) != sumDigits {
		return Entry{}, false
	}
	n, err := strconv.ParseUint(string(sum), 16, 32)
	if err != nil || uint32(n) != sumOf(text) || rawtext.Unmarshal(text, &e) != nil {
		return Entry{}, false
	}
	return e, true
}
