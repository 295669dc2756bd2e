// Package sockettest answers at unix sockets in tests.
package sockettest

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// Serve serves HTTP/1 and, in the clear, HTTP/2 at a socket until the end of the test.
func Serve(t testing.TB, handler http.HandlerFunc) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, Protocols: &protocols}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return socket
}
