package health

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// FuzzAsk: whatever answers at the socket, asking ends in time, and either the answer is a document
// or there is an error of bounded length.
func FuzzAsk(f *testing.F) {
	for _, s := range []string{"HTTP/1.1 200 OK\r\n\r\n{\"a\":1}", "HTTP/1.1 404 Not Found\r\nContent-Length: 13\r\n\r\n{\"error\":\"x\"}", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n{", "HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n", ""} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "h.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		f.Fatal(err)
	}
	answers := make(chan []byte, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096)) // the question
			select {
			case answer := <-answers:
				_, _ = io.Copy(c, bytes.NewReader(answer)) // who asked may have heard enough
			default: // asked again
			}
			_ = c.Close()
		}
	}()
	f.Cleanup(func() {
		if err := l.Close(); err != nil {
			f.Error(err)
		}
		<-ended
	})
	f.Fuzz(func(t *testing.T, answer []byte) {
		answers <- answer
		began := time.Now()
		var into any
		err := Ask(t.Context(), path, "/", &into)
		if took := time.Since(began); took > 2*requestMost {
			t.Errorf("%q takes %v", answer, took)
		}
		select {
		case <-answers: // it did not get there
		default:
		}
		if err == nil && !bytes.HasPrefix(answer, []byte("HTTP/")) {
			t.Errorf("%q is taken for %v", answer, into)
		}
		if err != nil && len(err.Error()) > len(answer)*6+500 {
			t.Errorf("%q: an error of %d bytes", answer, len(err.Error()))
		}
	})
}
