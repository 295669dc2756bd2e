package grpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
)

const (
	// messageHead is how many bytes are before a message: whether it is compressed, and its length.
	messageHead = 5
	// controlMax bounds what is no data of an answer, in bytes: headers, pings and settings without an
	// end.
	controlMax = 32 << 20
	// windowSize is how much data a server may send that was not taken yet. The kernel has far less of it
	// on the way.
	windowSize = 1 << 20
	// windowFirst is that of a connection before anything is said (RFC 9113, section 6.9.2).
	windowFirst = 64<<10 - 1
)

// An answer is the data that a server sends for a call. Read returns io.EOF at its end.
type answer struct {
	conn    io.ReadWriter
	frames  *io.LimitedReader // bounds all but the data
	most    int64             // bounds the data
	got     int64
	buffer  []byte // of a frame
	data    []byte // of the last frame, what was not read yet
	taken   uint32 // of the window, and not given back yet
	block   []byte // of headers
	open    bool   // the block goes on
	decoder headerDecoder
	fields  map[string]string
	last    bool // the stream has ended
}

// newAnswer is an answer of at most that many bytes of data.
func newAnswer(conn io.ReadWriter, most int64) *answer {
	return &answer{conn: conn, frames: &io.LimitedReader{R: conn, N: controlMax}, most: most, buffer: make([]byte, frameMax),
		decoder: headerDecoder{max: headerTableMax}, fields: map[string]string{}}
}

func (a *answer) Read(b []byte) (int, error) {
	for len(a.data) == 0 {
		if a.last && !a.open {
			return 0, io.EOF
		}
		if err := a.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, a.data)
	a.data = a.data[n:]
	return n, nil
}

// next reads a frame.
func (a *answer) next() error {
	f, err := readFrame(a.frames, a.buffer)
	if a.frames.N <= 0 {
		return fmt.Errorf("read answer: beside its data it has more than %d MiB", controlMax>>20)
	}
	if err != nil {
		return err
	}
	switch f.kind {
	case frameSettings, framePing:
		return a.acknowledge(f)
	case frameGoAway:
		return errors.New("read answer: the server closes the connection")
	}
	if f.stream != stream {
		return nil
	}
	switch f.kind {
	case frameReset:
		return errors.New("read answer: the server resets the stream")
	case frameData:
		return a.take(f)
	case frameHeaders, frameContinuation:
		return a.header(f)
	}
	return nil
}

func (a *answer) acknowledge(f frame) error {
	if f.flags&flagAck != 0 {
		return nil
	}
	reply := f.payload
	if f.kind == frameSettings {
		reply = nil
	}
	var out bytes.Buffer
	writeFrame(&out, f.kind, flagAck, 0, reply)
	_, err := a.conn.Write(out.Bytes())
	return err
}

// take takes data, and gives the server its window back by halves.
func (a *answer) take(f frame) error {
	if s := a.fields[":status"]; s != "200" {
		return fmt.Errorf("read answer: HTTP status %q", s)
	}
	a.frames.N += int64(f.size)
	if a.got += int64(len(f.payload)); a.got > a.most {
		return fmt.Errorf("read answer: it has more than %d MiB", a.most>>20)
	}
	a.data = f.payload
	a.last = a.last || f.flags&flagEndStream != 0
	if a.taken += uint32(f.size); a.taken < windowSize/2 || a.last {
		return nil
	}
	var out bytes.Buffer
	for _, of := range []uint32{0, stream} { // the connection has a window, and so has the stream
		writeFrame(&out, frameWindow, 0, of, binary.BigEndian.AppendUint32(nil, a.taken))
	}
	a.taken = 0
	_, err := a.conn.Write(out.Bytes())
	return err
}

// header takes headers, or the trailers after the data.
func (a *answer) header(f frame) error {
	a.block = append(a.block, f.payload...)
	a.last = a.last || f.kind == frameHeaders && f.flags&flagEndStream != 0
	if a.open = f.flags&flagEndHeaders == 0; a.open {
		return nil
	}
	decoded, err := a.decoder.decode(a.block)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	for _, field := range decoded {
		a.fields[field.Name] = field.Value
	}
	a.block = nil
	return nil
}

// status judges an answer that has ended: the trailers say whether it is an error.
func (a *answer) status() error {
	if s := a.fields[":status"]; s != "200" {
		return fmt.Errorf("read answer: HTTP status %q", s)
	}
	code, err := strconv.Atoi(a.fields["grpc-status"])
	if err != nil {
		return fmt.Errorf("read answer: grpc-status is %q", a.fields["grpc-status"])
	}
	if code == 0 {
		return nil
	}
	message, err := url.PathUnescape(a.fields["grpc-message"])
	if err != nil {
		message = a.fields["grpc-message"]
	}
	return &Status{code, message}
}
