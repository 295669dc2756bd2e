package grpc

import (
	"bytes"
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
	pair := appendField(nil, Pair{"x", string(bytes.Repeat([]byte{'y'}, 1000))})
	for name, e := range map[string]*endless{
		"continuations of a header": {head: frames(frameHeaders, 0, full), again: frames(frameContinuation, 0, full)},
		"headers":                   {again: frames(frameHeaders, flagEndHeaders, pair)},
		"data":                      {again: frames(frameData, 0, full)},
		"pings":                     {again: frames(framePing, 0, full[:8])},
		"settings":                  {again: frames(frameSettings, 0, full[:6])},
	} {
		e.most = 3 * wholeMost
		if _, err := receive(e); err == nil || e.given > 2*wholeMost {
			t.Errorf("%s: %d bytes were read, %v", name, e.given, err)
		}
	}
}
