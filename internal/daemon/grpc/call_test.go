package grpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
)

func TestCall(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789"), 300_000) // many frames, each way
	socket := grpctest.Serve(t, func(method string, metadata http.Header, request []byte) grpctest.Answer {
		if metadata.Get("Content-Type") != "application/grpc" || metadata.Get("Te") != "trailers" {
			t.Errorf("%s: %v", method, metadata)
		}
		switch method {
		case "/p.S/Large":
			return grpctest.Answer{Message: large}
		case "/p.S/None":
			return grpctest.Answer{Code: NotFound, Text: "no such thing: 100%25"}
		}
		return grpctest.Answer{Message: append([]byte(metadata.Get("containerd-namespace")), request...)}
	})
	for _, c := range []struct {
		method  string
		request []byte
		want    []byte
	}{{"Echo", []byte("abc"), []byte("k8s.ioabc")}, {"Echo", nil, []byte("k8s.io")}, {"Large", nil, large}} {
		got, err := Call(t.Context(), socket, "/p.S/"+c.method, c.request, Pair{"containerd-namespace", "k8s.io"})
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: %d bytes, %v", c.method, len(got), err)
		}
	}
	var status *Status
	if _, err := Call(t.Context(), socket, "/p.S/None", nil); !errors.As(err, &status) || *status != (Status{NotFound, "no such thing: 100%"}) {
		t.Errorf("an error: %v", err)
	}
	if _, err := Call(t.Context(), "/nowhere/s", "/p.S/Echo", nil); !errors.Is(err, unix.ENOENT) {
		t.Errorf("no socket: %v", err)
	}
}

// A server of HTTP/2 that is none of gRPC, or does not answer.
func TestCallElsewhere(t *testing.T) {
	socket := sockettest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/p.S/Odd":
			_, _ = io.WriteString(w, "hello")
		case "/p.S/Slow":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	for method, want := range map[string]string{"Odd": "grpc-status", "Nowhere": `HTTP status "404"`} {
		if _, err := Call(t.Context(), socket, "/p.S/"+method, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", method, err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Call(short, socket, "/p.S/Slow", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer: %v", err)
	}
}

// What does not speak gRPC gives an error, and no more.
func TestBrokenAnswers(t *testing.T) {
	frameOf := func(kind, flags byte, stream uint32, payload string) string {
		var out bytes.Buffer
		writeFrame(&out, kind, flags, stream, []byte(payload))
		return out.String()
	}
	for _, answer := range []string{
		"", "HTTP/1.1 400 Bad Request\r\n\r\n", strings.Repeat("\x00", 8),
		frameOf(frameGoAway, 0, 0, "12345678"), frameOf(frameReset, 0, stream, "1234"),
		frameOf(frameHeaders, flagEndHeaders|flagPadded, stream, ""), frameOf(frameHeaders, flagEndHeaders|flagPadded, stream, "\xff12"),
		frameOf(frameHeaders, flagEndHeaders|flagPriority, stream, "1"), frameOf(frameHeaders, flagEndHeaders, stream, "\xff\xff\xff\xff\xff"),
		frameOf(frameHeaders, flagEndHeaders|flagEndStream, stream, ""), frameOf(frameData, flagEndStream, stream, "x"),
	} {
		if got, err := receive(struct {
			io.Reader
			io.Writer
		}{strings.NewReader(answer), io.Discard}); err == nil {
			t.Errorf("%q: %q", answer, got)
		}
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Fuzz(func(_ *testing.T, answer []byte) {
		_, _ = receive(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(answer), io.Discard})
	})
}

func TestMessage(t *testing.T) {
	message := AppendNumber(AppendString(AppendNumber(nil, 1, 7), 2, "a"), 3, 1<<40)
	message = AppendString(message, 2, "b")
	message = append(message, 4<<3|wireFixed64, 1, 2, 3, 4, 5, 6, 7, 8, 4<<3|wireFixed32, 1, 2, 3, 4) // passed over
	var found []string
	err := Fields(message, func(number FieldNumber, value []byte) error {
		found = append(found, string(value))
		return nil
	})
	if err != nil || !slices.Equal(found, []string{"a", "b"}) {
		t.Errorf("%q, %v", found, err)
	}
	for number, want := range map[FieldNumber]uint64{1: 7, 3: 1 << 40, 4: 0} {
		if got, err := Number(message, number); got != want || err != nil {
			t.Errorf("field %d: %d, %v", number, got, err)
		}
	}
	for _, broken := range [][]byte{{0xff}, {0x0a, 0x05, 1}, {0x08}, {0x0b}, {0x00, 1}, {0x0d, 1}, {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}} {
		if _, err := Number(broken, 1); err == nil {
			t.Errorf("number of %x", broken)
		}
		if err := Fields(broken, func(FieldNumber, []byte) error { return nil }); err == nil {
			t.Errorf("fields of %x", broken)
		}
	}
}

func FuzzFields(f *testing.F) {
	f.Add(AppendNumber(AppendString(nil, 1, "a"), 2, 300))
	f.Fuzz(func(t *testing.T, message []byte) {
		total := 0
		err := Fields(message, func(_ FieldNumber, value []byte) error { total += len(value); return nil })
		if _, other := Number(message, 1); (err == nil) != (other == nil) || total > len(message) {
			t.Errorf("%v, %v, %d bytes in %d", err, other, total, len(message))
		}
	})
}
