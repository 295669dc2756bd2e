package grpc

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// A FieldNumber names a field within its message.
type FieldNumber = protowire.Number

// AppendString adds a field to a message.
func AppendString(message []byte, number FieldNumber, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(message, number, protowire.BytesType), value)
}

// AppendNumber adds a field to a message.
func AppendNumber(message []byte, number FieldNumber, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(message, number, protowire.VarintType), value)
}

// Fields calls a function for each field of a message that holds bytes: a string, or a
// message. Others are passed over.
func Fields(message []byte, each func(number FieldNumber, value []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return malformed(n)
		}
		message = message[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return malformed(n)
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return malformed(n)
		}
		if err := each(number, value); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}

// Number returns a field that is a number; 0, as the format has it, if it is not there.
func Number(message []byte, wanted FieldNumber) (value uint64, err error) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return 0, malformed(n)
		}
		message = message[n:]
		if number == wanted && kind == protowire.VarintType {
			if value, n = protowire.ConsumeVarint(message); n < 0 {
				return 0, malformed(n)
			}
		} else if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return 0, malformed(n)
		}
		message = message[n:]
	}
	return value, nil
}

func malformed(n int) error { return fmt.Errorf("read answer: %w", protowire.ParseError(n)) }
