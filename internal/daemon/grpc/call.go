package grpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/weir-io/weir/internal/daemon/socket"
)

// Codes of a Status (gRPC's statuscodes).
const (
	NotFound          = 5
	ResourceExhausted = 8 // also: a message is larger than the server may send
	Unimplemented     = 12
)

// A Status is an answer that is an error.
type Status struct {
	Code    int
	Message string
}

func (s *Status) Error() string { return fmt.Sprintf("status %d: %s", s.Code, s.Message) }

// IsCode reports whether an error is an answer with a code.
func IsCode(err error, code int) bool {
	var status *Status
	return errors.As(err, &status) && status.Code == code
}

// answerMax bounds a message that is read whole. Each reads lists, which can be larger.
const answerMax = 16 << 20

// A Pair is one of a call's metadata.
type Pair struct{ Name, Value string }

// Call sends a message to a method ("/package.Service/Method") at a socket, and returns the
// answer. If the server refuses, the error is a *Status.
func Call(ctx context.Context, at, method string, request []byte, metadata ...Pair) ([]byte, error) {
	return socket.Ask(ctx, at, func(conn io.ReadWriter) ([]byte, error) {
		if err := send(conn, method, request, metadata); err != nil {
			return nil, err
		}
		return receive(conn)
	})
}

// send sends a call. A request is far smaller than the window that a server gives at first.
func send(conn io.Writer, method string, request []byte, metadata []Pair) error {
	var out bytes.Buffer
	out.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	writeFrame(&out, frameSettings, 0, 0, binary.BigEndian.AppendUint32([]byte{0, settingWindow}, windowSize))
	writeFrame(&out, frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, windowSize-windowFirst))
	writeFrame(&out, frameHeaders, flagEndHeaders, stream, headers(method, metadata))
	message := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(request))) // not compressed
	message = append(message, request...)
	for len(message) > frameMax {
		writeFrame(&out, frameData, 0, stream, message[:frameMax])
		message = message[frameMax:]
	}
	writeFrame(&out, frameData, flagEndStream, stream, message)
	_, err := conn.Write(out.Bytes())
	return err
}

// headers are a call's, none of them in the table that HTTP/2 peers keep.
func headers(method string, metadata []Pair) []byte {
	var block []byte
	for _, p := range append([]Pair{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "localhost"},
		{"content-type", "application/grpc"}, {"te", "trailers"}, {"user-agent", "weir"},
	}, metadata...) {
		block = appendField(block, p)
	}
	return block
}

// receive reads an answer of one message.
func receive(conn io.ReadWriter) ([]byte, error) {
	a := newAnswer(conn, answerMax)
	data, err := io.ReadAll(a)
	if err == nil {
		err = a.status()
	}
	if err != nil {
		return nil, err
	}
	if len(data) < messageHead || data[0] != 0 || uint64(binary.BigEndian.Uint32(data[1:])) != uint64(len(data)-messageHead) {
		return nil, errors.New("read answer: it is not one message")
	}
	return data[messageHead:], nil
}
