package grpc

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
)

// endless answers with the same bytes again and again, up to most of them.
type endless struct {
	head, again []byte
	given, most int
}

func (e *endless) Write(b []byte) (int, error) { return len(b), nil }

func (e *endless) Read(b []byte) (int, error) {
	if e.given > e.most {
		return 0, io.EOF
	}
	if len(e.head) == 0 {
		e.head = e.again
	}
	n := copy(b, e.head)
	e.head, e.given = e.head[n:], e.given+n
	return n, nil
}

// No part of an answer that has no end fills memory: each is refused long before.
func TestEndlessAnswers(t *testing.T) {
	frames := func(kind, flags byte, payload []byte) []byte {
		var out bytes.Buffer
		writeFrame(&out, kind, flags, stream, payload)
		return out.Bytes()
	}
	full := bytes.Repeat([]byte{0}, frameMax)
	begun := frames(frameHeaders, flagEndHeaders, appendField(nil, Pair{":status", "200"}))
	pair := appendField(nil, Pair{"x", string(bytes.Repeat([]byte{'y'}, 1000))})
	for name, e := range map[string]*endless{
		"continuations of a header": {head: frames(frameHeaders, 0, full), again: frames(frameContinuation, 0, full)},
		"headers":                   {again: frames(frameHeaders, flagEndHeaders, pair)},
		"data":                      {head: begun, again: frames(frameData, 0, full)},
		"data without headers":      {again: frames(frameData, 0, full)},
		"no data":                   {head: begun, again: frames(frameData, 0, nil)},
		"pings":                     {again: frames(framePing, 0, full[:8])},
		"settings":                  {again: frames(frameSettings, 0, full[:6])},
	} {
		e.most = 3 * controlMax
		if _, err := receive(e); err == nil || e.given > 2*controlMax {
			t.Errorf("%s: %d bytes were read, %v", name, e.given, err)
		}
	}
	// Nor does a list: no more than its bound is read, and nothing of it is kept.
	one := AppendString(nil, 1, string(AppendString(nil, 2, string(full[:8192]))))
	message := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(one))), one...)
	e, things := &endless{head: begun, again: frames(frameData, 0, message), most: 3 * controlMax}, 0
	err := receiveEach(e, controlMax, Pick{}, func(thing []byte, _ bool) error {
		if things++; len(thing) != 0 {
			t.Fatalf("a thing of %d bytes", len(thing))
		}
		return nil
	})
	if err == nil || e.given > 2*controlMax || things == 0 {
		t.Errorf("a list: %d bytes were read, %d things, %v", e.given, things, err)
	}
}
