package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
)

// A line is a checksum of 8 hexadecimal digits, a blank, the entry as JSON, and a newline.
const sumDigits = 8

func sumOf(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

// encode makes a line.
func encode(e Entry) ([]byte, error) {
	text, err := json.Marshal(e.bounded())
	if err != nil {
		return nil, err
	}
	if len(text) > lineMost-sumDigits-2 {
		e.Changes = nil // names of devices that are all escapes
		if text, err = json.Marshal(e.bounded()); err != nil {
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
	if err != nil || uint32(n) != sumOf(text) || json.Unmarshal(text, &e) != nil {
		return Entry{}, false
	}
	return e, true
}
