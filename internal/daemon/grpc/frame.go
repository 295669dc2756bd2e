package grpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Frames of HTTP/2, RFC 9113, sections 4 and 6.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameSettings     = 0x4
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindow       = 0x8
	frameContinuation = 0x9

	flagAck        = 0x1 // of settings and pings
	flagEndStream  = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	settingWindow = 0x4
	frameMax      = 16 << 10 // without another setting, either way
	stream        = 1        // the one that there is
)

type frame struct {
	kind, flags byte
	stream      uint32
	size        int    // of the payload, as it came
	payload     []byte // without padding and priority
}

func writeFrame(out *bytes.Buffer, kind, flags byte, stream uint32, payload []byte) {
	n := len(payload)
	out.Write([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags})
	out.Write(binary.BigEndian.AppendUint32(nil, stream))
	out.Write(payload)
}

// readFrame reads a frame, whose payload is in a buffer of frameMax bytes until the next one is read.
func readFrame(in io.Reader, buffer []byte) (frame, error) {
	var head [9]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return frame{}, cutShort(err)
	}
	n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	if n > frameMax {
		return frame{}, fmt.Errorf("read answer: a frame of %d bytes; what answers there does not speak gRPC", n)
	}
	f := frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:]) &^ (1 << 31), size: n, payload: buffer[:n]}
	if _, err := io.ReadFull(in, f.payload); err != nil {
		return frame{}, cutShort(err)
	}
	if f.kind != frameData && f.kind != frameHeaders {
		return f, nil
	}
	padding := 0
	if f.flags&flagPadded != 0 {
		if n < 1 {
			return frame{}, errPadding
		}
		padding, f.payload = int(f.payload[0]), f.payload[1:]
	}
	if f.kind == frameHeaders && f.flags&flagPriority != 0 {
		if len(f.payload) < 5 {
			return frame{}, errPadding
		}
		f.payload = f.payload[5:]
	}
	if padding > len(f.payload) {
		return frame{}, errPadding
	}
	f.payload = f.payload[:len(f.payload)-padding]
	return f, nil
}

var errPadding = errors.New("read answer: a frame is shorter than its padding")

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("read answer: it is cut short; what answers there may not speak gRPC")
	}
	return err
}
