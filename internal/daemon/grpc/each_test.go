package grpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
)

// thing is one of a list: its name, a large field, and a label behind that.
func thing(name string, large []byte, label string) string {
	return string(AppendString(AppendNumber(AppendString(AppendString(nil, 1, name), 5, string(large)), 6, 7), 2, label))
}

// A list is longer than any answer may be that is read whole, and than every window: all of it is read, thing by thing. What
// is not wanted of a thing may be of any size.
func TestEach(t *testing.T) {
	const many = 100
	large := bytes.Repeat([]byte("0123456789abcdef"), 16<<10) // 256 KiB
	stream := func(yield func([]byte) bool) {
		for i := range many {
			if !yield(AppendString(nil, 1, thing(fmt.Sprint("t", i), large, "l"))) {
				return
			}
		}
	}
	socket := grpctest.Serve(t, func(method string, _ http.Header, request []byte) grpctest.Answer {
		if string(request) != "abc" {
			t.Errorf("%s: %q", method, request)
		}
		switch method {
		case "/p.S/Stream":
			return grpctest.Answer{Stream: stream}
		case "/p.S/Broken":
			return grpctest.Answer{Stream: stream, Code: ResourceExhausted, Text: "trying to send message larger than max"}
		case "/p.S/None":
			return grpctest.Answer{}
		case "/p.S/Refused":
			return grpctest.Answer{Code: Unimplemented, Text: "unknown method"}
		}
		var whole []byte // in one message
		for m := range stream {
			whole = append(whole, m...)
		}
		return grpctest.Answer{Message: AppendNumber(whole, 2, 3)}
	})
	for method, want := range map[string]struct{ things, code int }{
		"Stream": {many, 0}, "Message": {many, 0}, "Broken": {many, ResourceExhausted}, "None": {0, 0}, "Refused": {0, Unimplemented},
	} {
		n, last := 0, ""
		err := Each(t.Context(), socket, "/p.S/"+method, []byte("abc"), Pick{Fields: []FieldNumber{1, 2, 6}, Most: 100}, func(got []byte, whole bool) error {
			if !whole || !bytes.Equal(got, AppendString(AppendNumber(AppendString(nil, 1, fmt.Sprint("t", n)), 6, 7), 2, "l")) {
				t.Errorf("%s: %q, whole: %t", method, got, whole)
			}
			n, last = n+1, string(got)
			return nil
		})
		if n != want.things || IsCode(err, want.code) != (want.code != 0) || (err == nil) != (want.code == 0) {
			t.Errorf("%s: %d things, the last is %q: %v", method, n, last, err)
		}
	}
	broken := errors.New("broken")
	if err := Each(t.Context(), socket, "/p.S/Stream", []byte("abc"), Pick{}, func([]byte, bool) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// Of a thing whose wanted fields are too large, the others are known.
func TestAThingThatIsTooLarge(t *testing.T) {
	label := strings.Repeat("x", 100)
	answer := answerWith(AppendString(AppendString(nil, 1, thing("large", nil, label)), 1, thing("small", nil, "y")))
	var all []string
	err := receiveEach(answer, controlMax, Pick{Fields: []FieldNumber{1, 2}, Most: 100}, func(got []byte, whole bool) error {
		all = append(all, fmt.Sprintf("%q %t", got, whole))
		return nil
	})
	if want := []string{`"\n\x05large" false`, `"\n\x05small\x12\x01y" true`}; err != nil || !slices.Equal(all, want) {
		t.Errorf("%q, %v", all, err)
	}
}

// The window is given back as data comes, of the connection and of the stream, with the bytes of its padding.
func TestTheWindowIsGivenBack(t *testing.T) {
	var in, out bytes.Buffer
	writeFrame(&in, frameHeaders, flagEndHeaders, stream, appendField(nil, Pair{":status", "200"}))
	given := 0
	for range 200 { // 3 MiB
		payload := append([]byte{100}, make([]byte, frameMax-1)...)
		writeFrame(&in, frameData, flagPadded, stream, payload)
		given += len(payload)
	}
	a := newAnswer(struct {
		io.Reader
		io.Writer
	}{&in, &out}, controlMax)
	if n, err := io.Copy(io.Discard, a); n != 200*(frameMax-101) || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	back := map[uint32]int{}
	for out.Len() > 0 {
		f, err := readFrame(&out, make([]byte, frameMax))
		if err != nil || f.kind != frameWindow {
			t.Fatalf("%+v, %v", f, err)
		}
		back[f.stream] += int(binary.BigEndian.Uint32(f.payload))
	}
	if len(back) != 2 || back[0] != back[stream] || back[0] > given || back[0] < given-windowSize/2 {
		t.Errorf("%d bytes came, and %v were given back", given, back)
	}
}

// answerWith is an answer of one message, in small frames.
func answerWith(message []byte) io.ReadWriter {
	var out bytes.Buffer
	writeFrame(&out, frameHeaders, flagEndHeaders, stream, appendField(nil, Pair{":status", "200"}))
	data := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	for part := range slices.Chunk(data, 7) {
		writeFrame(&out, frameData, 0, stream, part)
	}
	writeFrame(&out, frameHeaders, flagEndHeaders|flagEndStream, stream, appendField(nil, Pair{"grpc-status", "0"}))
	return struct {
		io.Reader
		io.Writer
	}{&out, io.Discard}
}

// What is cut short, compressed or no message is an error.
func TestBrokenLists(t *testing.T) {
	good := AppendString(nil, 1, thing("a", nil, "l"))
	for name, message := range map[string][]byte{
		"a field that is cut": good[:len(good)-1], "no tag": {0x00}, "a group": {0x0b}, "a tag without an end": bytes.Repeat([]byte{0xff}, 11),
		"a thing that is larger than the message": {0x0a, 0x05, 1}, "a field that is larger than the thing": AppendString(nil, 1, "\x0a\x05x"),
	} {
		if err := receiveEach(answerWith(message), controlMax, Pick{Fields: []FieldNumber{1}, Most: 100}, func([]byte, bool) error { return nil }); err == nil {
			t.Error(name)
		}
	}
	for name, data := range map[string]string{"its head": "\x00\x00", "a message": "\x00\x00\x00\x00\x05\x0a", "a compressed message": "\x01\x00\x00\x00\x00"} {
		var in bytes.Buffer
		writeFrame(&in, frameHeaders, flagEndHeaders, stream, appendField(nil, Pair{":status", "200"}))
		writeFrame(&in, frameData, 0, stream, []byte(data))
		writeFrame(&in, frameHeaders, flagEndHeaders|flagEndStream, stream, appendField(nil, Pair{"grpc-status", "0"}))
		if err := receiveEach(struct {
			io.Reader
			io.Writer
		}{&in, io.Discard}, controlMax, Pick{}, func([]byte, bool) error { return nil }); err == nil {
			t.Errorf("%s is cut, or cannot be read", name)
		}
	}
}

// FuzzEach: what is picked is what is in the message, and nothing else.
func FuzzEach(f *testing.F) {
	f.Add(AppendNumber(AppendString(AppendString(nil, 1, thing("a", nil, "l")), 1, "\x0d1234"), 3, 4))
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, message []byte) {
		var all [][]field
		if err := receiveEach(answerWith(message), controlMax, Pick{Fields: []FieldNumber{1, 6}, Most: 1 << 20}, func(got []byte, whole bool) error {
			if !whole {
				t.Errorf("%q is not whole", got)
			}
			all = append(all, picked(t, bytes.Clone(got)))
			return nil
		}); err != nil {
			return
		}
		var want [][]field
		err := Fields(message, func(number FieldNumber, value []byte) error {
			if number == 1 {
				want = append(want, picked(t, value))
			}
			return nil
		})
		if err != nil || !slices.EqualFunc(all, want, func(a, b []field) bool {
			return slices.EqualFunc(a, b, func(a, b field) bool {
				return a.number == b.number && a.varint == b.varint && bytes.Equal(a.bytes, b.bytes)
			})
		}) {
			t.Errorf("%q: %+v, want %+v, %v", message, all, want, err)
		}
	})
}

// picked are the fields 1 and 6 of a message.
func picked(t *testing.T, message []byte) (all []field) {
	t.Helper()
	for len(message) > 0 {
		one, rest, err := consume(message)
		if err != nil {
			t.Fatalf("%q: %v", message, err)
		}
		if message = rest; one.number == 1 || one.number == 6 {
			all = append(all, one)
		}
	}
	return all
}
