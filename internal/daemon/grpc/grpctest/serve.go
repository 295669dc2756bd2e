// Package grpctest answers calls of gRPC in tests.
package grpctest

import (
	"encoding/binary"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
)

// An Answer is a message, or an error's code and text.
type Answer struct {
	Message []byte
	Code    int
	Text    string
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
		if a.Code == 0 {
			_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(a.Message))), a.Message...))
		}
		w.Header().Set("Grpc-Status", strconv.Itoa(a.Code))
		w.Header().Set("Grpc-Message", a.Text)
	})
}
