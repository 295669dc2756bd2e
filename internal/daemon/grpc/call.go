package grpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/weir-io/weir/internal/daemon/socket"
)

// Codes of a Status (gRPC's statuscodes).
const (
	NotFound      = 5
	Unimplemented = 12
)

// A Status is an answer that is an error.
type Status struct {
	Code    int
	Message string
}

func (s *Status) Error() string { return fmt.Sprintf("status %d: %s", s.Code, s.Message) }

// answerMax bounds a message; the list of a node's pods has some hundred kilobytes.
const answerMax = 16 << 20

// wholeMost bounds an answer with its frames, in bytes: headers, pings and settings without an end
// too.
const wholeMost = 2 * answerMax

// A Pair is one of a call's metadata.
type Pair struct{ Name, Value string }

// Call sends a message to a method ("/package.Service/Method") at a socket, and returns the
// answer. If the server refuses, the error is a *Status.
func Call(ctx context.Context, at, method string, request []byte, metadata ...Pair) ([]byte, error) {
	return socket.Ask(ctx, at, func(conn io.ReadWriter) ([]byte, error) { return exchange(conn, method, request, metadata) })
}

func exchange(conn io.ReadWriter, method string, request []byte, metadata []Pair) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	// Windows as large as an answer can be, so that none has to be opened later.
	writeFrame(&out, frameSettings, 0, 0, binary.BigEndian.AppendUint32([]byte{0, settingWindow}, answerMax))
	writeFrame(&out, frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, answerMax))
	writeFrame(&out, frameHeaders, flagEndHeaders, stream, headers(method, metadata))
	message := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(request))) // not compressed
	message = append(message, request...)
	for len(message) > frameMax {
		writeFrame(&out, frameData, 0, stream, message[:frameMax])
		message = message[frameMax:]
	}
	writeFrame(&out, frameData, flagEndStream, stream, message)
	if _, err := conn.Write(out.Bytes()); err != nil {
		return nil, err
	}
	return receive(conn)
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

// receive reads frames until the stream ends.
func receive(conn io.ReadWriter) ([]byte, error) {
	in := &io.LimitedReader{R: conn, N: wholeMost}
	var block, data []byte
	fields := map[string]string{}
	decoder := headerDecoder{max: headerTableMax}
	for last := false; ; {
		f, err := nextFrame(in)
		if err != nil {
			return nil, err
		}
		switch f.kind {
		case frameSettings, framePing:
			if f.flags&flagAck != 0 {
				continue
			}
			reply := f.payload
			if f.kind == frameSettings {
				reply = nil
			}
			var out bytes.Buffer
			writeFrame(&out, f.kind, flagAck, 0, reply)
			if _, err := conn.Write(out.Bytes()); err != nil {
				return nil, err
			}
			continue
		case frameGoAway:
			return nil, errors.New("read answer: the server closes the connection")
		}
		if f.stream != stream {
			continue
		}
		switch f.kind {
		case frameReset:
			return nil, errors.New("read answer: the server resets the stream")
		case frameData:
			if data = append(data, f.payload...); len(data) > answerMax {
				return nil, fmt.Errorf("read answer: it has more than %d MiB", answerMax>>20)
			}
			last = last || f.flags&flagEndStream != 0
		case frameHeaders, frameContinuation:
			block = append(block, f.payload...)
			last = last || f.kind == frameHeaders && f.flags&flagEndStream != 0
			if f.flags&flagEndHeaders == 0 {
				continue
			}
			decoded, err := decoder.decode(block)
			if err != nil {
				return nil, fmt.Errorf("read answer: %w", err)
			}
			for _, field := range decoded {
				fields[field.Name] = field.Value
			}
			block = nil
		}
		if last {
			return answerOf(fields, data)
		}
	}
}

// nextFrame reads a frame of an answer that has a bound.
func nextFrame(in *io.LimitedReader) (frame, error) {
	f, err := readFrame(in)
	if in.N <= 0 {
		err = fmt.Errorf("read answer: with its frames it has more than %d MiB", wholeMost>>20)
	}
	return f, err
}

// answerOf judges what has come: the trailers say whether it is a message or an error.
func answerOf(fields map[string]string, data []byte) ([]byte, error) {
	if s := fields[":status"]; s != "200" {
		return nil, fmt.Errorf("read answer: HTTP status %q", s)
	}
	code, err := strconv.Atoi(fields["grpc-status"])
	if err != nil {
		return nil, fmt.Errorf("read answer: grpc-status is %q", fields["grpc-status"])
	}
	if code != 0 {
		message, err := url.PathUnescape(fields["grpc-message"])
		if err != nil {
			message = fields["grpc-message"]
		}
		return nil, &Status{code, message}
	}
	if len(data) < 5 || data[0] != 0 || uint64(binary.BigEndian.Uint32(data[1:])) != uint64(len(data)-5) {
		return nil, errors.New("read answer: it is not one message")
	}
	return data[5:], nil
}
