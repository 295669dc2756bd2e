// Package grpctest answers calls of gRPC in tests.
package grpctest

import (
	"encoding/binary"
	"io"
	"iter"
	"net/http"
	"strconv"
	"testing"

	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
)

// An Answer is a message, or an error's code and text.
type Answer struct {
	Message []byte
	// Stream are the messages of a streaming method, in the place of the one. An error comes after them.
	Stream iter.Seq[[]byte]
	Code   int
	Text   string
}

// messages are what comes before the end of an answer.
func (a Answer) messages() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		switch {
		case a.Stream != nil:
			a.Stream(yield)
		case a.Code == 0:
			yield(a.Message)
		}
	}
}

// Serve answers at a socket until the end of the test.
func Serve(t testing.TB, answer func(method string, metadata http.Header, request []byte) Answer) (socket string) {
	t.Helper()
	return sockettest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) < 5 {
			t.Errorf("%s: a request of %d bytes: %v", r.URL.Path, len(body), err)
			return
		}
		a := answer(r.URL.Path, r.Header, body[5:])
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		for m := range a.messages() {
			if _, err := w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(m))), m...)); err != nil {
				return // nobody reads the rest
			}
		}
		w.Header().Set("Grpc-Status", strconv.Itoa(a.Code))
		w.Header().Set("Grpc-Message", a.Text)
	})
}
