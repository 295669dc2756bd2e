package grpc

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/weir-io/weir/internal/daemon/socket"
)

// listMax bounds the data of a list. No more than one of the things is in memory; the time of a call is bounded
// too.
const listMax = 4 << 30

// A Pick says what is wanted of each of the things that a method lists.
type Pick struct {
	Fields []FieldNumber // the others are passed over, however large they are
	Most   int           // bytes of these, of one thing
	// Needs are for those of the fields that are maps of texts, such as labels: an entry whose key is not needed is passed over as
	// the other fields are. nil, or a nil function: all are needed.
	Needs map[FieldNumber]func(key string) bool
}

// Each sends a message to a method that lists things, each a first field of the answer, and calls a function for one
// after the other. The answer can be one message or, of a streaming method, any number of them. A thing is a
// message that has the picked fields alone, and is valid until the function returns. whole is false if picked fields, or
// entries that are needed, are left out because they are too large. After an error some of the things may have been listed.
func Each(ctx context.Context, at, method string, request []byte, pick Pick, each func(thing []byte, whole bool) error, metadata ...Pair) error {
	_, err := socket.Ask(ctx, at, func(conn io.ReadWriter) ([]byte, error) {
		if err := send(conn, method, request, metadata); err != nil {
			return nil, err
		}
		return nil, receiveEach(conn, listMax, pick, each)
	})
	return err
}

// receiveEach reads an answer of at most that many bytes.
func receiveEach(conn io.ReadWriter, most int64, pick Pick, each func(thing []byte, whole bool) error) error {
	a := newAnswer(conn, most)
	in := bufio.NewReaderSize(a, frameMax)
	for {
		var head [messageHead]byte
		if _, err := io.ReadFull(in, head[:]); errors.Is(err, io.EOF) {
			return a.status()
		} else if err != nil {
			return cutShort(err)
		}
		if head[0] != 0 {
			return errors.New("read answer: a message is compressed")
		}
		if err := eachOf(&part{in, uint64(binary.BigEndian.Uint32(head[1:]))}, pick, each); err != nil {
			return err
		}
	}
}

// eachOf reads one message.
func eachOf(message *part, pick Pick, each func(thing []byte, whole bool) error) error {
	for message.left > 0 {
		f, err := message.next()
		if err != nil {
			return err
		}
		if f.number != 1 || f.wire != wireBytes {
			if err := message.skip(f.size); err != nil {
				return err
			}
			continue
		}
		thing, whole, err := pick.from(&part{message.in, f.size})
		if err != nil {
			return err
		}
		message.left -= f.size
		if err := each(thing, whole); err != nil {
			return err
		}
	}
	return nil
}

// from reads a thing.
func (p Pick) from(thing *part) (picked []byte, whole bool, err error) {
	whole = true
	for thing.left > 0 {
		f, err := thing.next()
		if err != nil {
			return nil, false, err
		}
		wanted := slices.Contains(p.Fields, f.number)
		if is := p.Needs[f.number]; wanted && is != nil && f.wire == wireBytes {
			fits := false
			if picked, fits, err = p.appendEntry(picked, thing, f, is); err != nil {
				return nil, false, err
			}
			whole = whole && fits
			continue
		}
		if fits := uint64(len(picked))+f.size <= uint64(p.Most); !wanted || !fits {
			whole = whole && !wanted
			if err := thing.skip(f.size); err != nil {
				return nil, false, err
			}
			continue
		}
		picked = binary.AppendUvarint(picked, uint64(f.number)<<3|uint64(f.wire))
		switch f.wire {
		case wireVarint:
			picked = binary.AppendUvarint(picked, f.varint)
		case wireBytes:
			picked = binary.AppendUvarint(picked, f.size)
		}
		if picked, err = thing.appendTo(picked, f.size); err != nil {
			return nil, false, err
		}
	}
	return picked, whole, nil
}

// A part is a message, or a field of one, of which some bytes are still to be read.
type part struct {
	in   *bufio.Reader
	left uint64
}

// A fieldHead is what is before the value of a field.
type fieldHead struct {
	number FieldNumber
	wire   byte
	varint uint64
	size   uint64 // bytes of the value that come now; that of a varint was read
}

// next reads the head of a field.
func (p *part) next() (f fieldHead, err error) {
	tag, err := p.varint()
	if err != nil {
		return f, err
	}
	if tag>>3 == 0 || tag>>3 > numberMax {
		return f, errMalformed
	}
	f.number, f.wire = FieldNumber(tag>>3), byte(tag&7)
	switch f.wire {
	case wireVarint:
		f.varint, err = p.varint()
	case wireBytes:
		f.size, err = p.varint()
	case wireFixed64:
		f.size = 8
	case wireFixed32:
		f.size = 4
	default:
		err = errMalformed
	}
	if err == nil && f.size > p.left {
		err = errMalformed
	}
	return f, err
}

func (p *part) varint() (uint64, error) {
	var raw [binary.MaxVarintLen64]byte
	for i := range raw {
		if p.left == 0 {
			return 0, errMalformed
		}
		b, err := p.in.ReadByte()
		if err != nil {
			return 0, cutShort(err)
		}
		p.left--
		if raw[i] = b; b < 0x80 {
			value, _, err := consumeVarint(raw[:i+1])
			return value, err
		}
	}
	return 0, errMalformed
}

// appendTo reads bytes, and appends them to others.
func (p *part) appendTo(to []byte, size uint64) ([]byte, error) {
	n := len(to)
	to = slices.Grow(to, int(size))[:n+int(size)]
	if _, err := io.ReadFull(p.in, to[n:]); err != nil {
		return nil, cutShort(err)
	}
	p.left -= size
	return to, nil
}

// skip passes over bytes.
func (p *part) skip(size uint64) error {
	if _, err := io.CopyN(io.Discard, p.in, int64(size)); err != nil { // a message has at most 4 GiB
		return cutShort(err)
	}
	p.left -= size
	return nil
}
