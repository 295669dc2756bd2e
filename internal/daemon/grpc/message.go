package grpc

import (
	"encoding/binary"
	"errors"
)

// Messages are protocol buffers: fields, each a tag with its number and its wire type, and
// a value. The few lines are here, because the package of protobuf's own takes 0.3 ms of
// each start.

// A FieldNumber names a field within its message.
type FieldNumber uint32

// Wire types (protobuf.dev/programming-guides/encoding). Groups are in no message here.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// AppendString adds a field to a message.
func AppendString(message []byte, number FieldNumber, value string) []byte {
	message = binary.AppendUvarint(message, uint64(number)<<3|wireBytes)
	message = binary.AppendUvarint(message, uint64(len(value)))
	return append(message, value...)
}

// AppendNumber adds a field to a message.
func AppendNumber(message []byte, number FieldNumber, value uint64) []byte {
	message = binary.AppendUvarint(message, uint64(number)<<3|wireVarint)
	return binary.AppendUvarint(message, value)
}

// Fields calls a function for each field of a message that holds bytes: a string, or a
// message. Others are passed over.
func Fields(message []byte, each func(number FieldNumber, value []byte) error) error {
	for len(message) > 0 {
		f, rest, err := consume(message)
		if err != nil {
			return err
		}
		if f.wire == wireBytes {
			if err := each(f.number, f.bytes); err != nil {
				return err
			}
		}
		message = rest
	}
	return nil
}

// Names takes from a list of things, each a first field of the message, what they are
// called: the first field of each.
func Names(message []byte) (all []string, err error) {
	err = Fields(message, func(number FieldNumber, thing []byte) error {
		if number != 1 {
			return nil
		}
		return Fields(thing, func(number FieldNumber, value []byte) error {
			if number == 1 {
				all = append(all, string(value))
			}
			return nil
		})
	})
	return all, err
}

// Entry adds an entry of a map of texts, such as labels: its key is the first field, its value the
// second.
func Entry(message []byte, into map[string]string) error {
	var key, value string
	err := Fields(message, func(number FieldNumber, text []byte) error {
		switch number {
		case 1:
			key = string(text)
		case 2:
			value = string(text)
		}
		return nil
	})
	if err == nil {
		into[key] = value
	}
	return err
}

// Number returns a field that is a number; 0, as the format has it, if it is not there.
func Number(message []byte, wanted FieldNumber) (value uint64, err error) {
	for len(message) > 0 {
		f, rest, err := consume(message)
		if err != nil {
			return 0, err
		}
		if f.number == wanted && f.wire == wireVarint {
			value = f.varint
		}
		message = rest
	}
	return value, nil
}

type field struct {
	number FieldNumber
	wire   byte
	varint uint64
	bytes  []byte
}

var errMalformed = errors.New("read answer: it is no message of protobuf")

// numberMax is the largest number of a field.
const numberMax = 1<<29 - 1

// consume takes the first field off a message.
func consume(message []byte) (f field, rest []byte, err error) {
	tag, message, err := consumeVarint(message)
	if err != nil {
		return f, nil, err
	}
	if tag>>3 == 0 || tag>>3 > numberMax {
		return f, nil, errMalformed
	}
	f.number, f.wire = FieldNumber(tag>>3), byte(tag&7)
	size := uint64(0)
	switch f.wire {
	case wireVarint:
		f.varint, rest, err = consumeVarint(message)
		return f, rest, err
	case wireBytes:
		if size, message, err = consumeVarint(message); err != nil {
			return f, nil, err
		}
	case wireFixed64:
		size = 8
	case wireFixed32:
		size = 4
	default:
		return f, nil, errMalformed
	}
	if size > uint64(len(message)) {
		return f, nil, errMalformed
	}
	f.bytes = message[:size]
	return f, message[size:], nil
}

func consumeVarint(message []byte) (value uint64, rest []byte, err error) {
	value, n := binary.Uvarint(message)
	if n <= 0 {
		return 0, nil, errMalformed
	}
	return value, message[n:], nil
}
