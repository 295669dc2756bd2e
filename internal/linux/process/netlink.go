package process

import (
	"encoding/binary"
	"iter"
)

// Attributes of netlink(7) messages: a length with these four bytes, a kind, and the value, each padded
// to four bytes.
const (
	attributeHeader = 4
	attributeKind   = 0x3fff // without the flags
)

func attribute(kind uint16, value []byte) []byte {
	a := binary.NativeEndian.AppendUint16(nil, uint16(attributeHeader+len(value)))
	a = append(binary.NativeEndian.AppendUint16(a, kind), value...)
	return append(a, make([]byte, -len(a)&3)...)
}

// attributes are those of a message of generic netlink, behind its own header of four bytes.
func attributes(body []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for at := 4; at+attributeHeader <= len(body); {
			size := int(binary.NativeEndian.Uint16(body[at:]))
			if size < attributeHeader || at+size > len(body) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(body[at+2:])&attributeKind, body[at+attributeHeader:at+size]) {
				return
			}
			at += (size + 3) &^ 3
		}
	}
}
