package seats

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// patience is far longer than anything here takes.
const patience = 20 * time.Second

// serve serves with so many seats. /wait answers when the test ends.
func serve(t *testing.T, most int) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Hour, Handler: handler(t)}
	done := make(chan error)
	go func() { done <- server.Serve(Limit(server, l, most)) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func handler(t *testing.T) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			_, _ = fmt.Fprint(w, "wait")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-t.Context().Done():
			case <-r.Context().Done():
			}
		}
	})
}

// A client has a connection of its own.
type client struct {
	net.Conn
	*bufio.Reader
}

func dial(t *testing.T, address string) client {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return client{c, bufio.NewReader(c)}
}

// asks asks and waits for the head of the answer.
func (c client) asks(path string) error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(c.Conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return err
	}
	r, err := http.ReadResponse(c.Reader, nil)
	if err == nil && path != "/wait" {
		err = errors.Join(r.Body.Close())
	}
	return err
}

// gone reports whether the server has closed the connection.
func (c client) gone() bool {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, err := c.Peek(1)
	return errors.Is(err, io.EOF)
}

// Where all seats are taken, the one that has been idle for the longest time is given away, and at once.
func TestTheIdleMakeRoom(t *testing.T) {
	address := serve(t, 3)
	var all []client
	for _, path := range []string{"/wait", "/", "/"} {
		c := dial(t, address)
		if err := c.asks(path); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	began := time.Now()
	if err := dial(t, address).asks("/"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > askMost {
		t.Errorf("it took %v", took)
	}
	if !all[1].gone() {
		t.Error("it is not the idlest that had to go")
	}
	if err := all[2].asks("/"); err != nil {
		t.Errorf("the other one has gone: %v", err)
	}
}

// So are seats of clients that come and do not ask, or ask for half of something.
func TestWhoDoesNotAskMakesRoom(t *testing.T) {
	address := serve(t, 3)
	dial(t, address)
	if _, err := io.WriteString(dial(t, address).Conn, "GET / HTT"); err != nil {
		t.Fatal(err)
	}
	half := dial(t, address)
	if err := half.asks("/"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(half.Conn, "GET / HTT"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := dial(t, address).asks("/wait"); err != nil {
			t.Fatal(err)
		}
	}
}

// Nobody has to go whose question is being answered. Who comes waits until one leaves.
func TestAnswersGoOn(t *testing.T) {
	address := serve(t, 2)
	first, second := dial(t, address), dial(t, address)
	if err := errors.Join(first.asks("/wait"), second.asks("/wait")); err != nil {
		t.Fatal(err)
	}
	third := dial(t, address)
	answered := make(chan error, 1)
	go func() { answered <- third.asks("/") }()
	select {
	case err := <-answered:
		t.Fatalf("there are two seats for three: %v", err)
	case <-time.After(askMost + time.Second):
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if err := first.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Discard(1 << 10); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Errorf("the first one has gone: %v", err)
	}
}

func isTimeout(err error) bool {
	var is net.Error
	return errors.As(err, &is) && is.Timeout()
}

// The end of the server ends a wait for a seat.
func TestTheEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := Limit(&http.Server{Handler: handler(t), ReadHeaderTimeout: time.Hour}, l, 0)
	dial(t, l.Addr().String())
	ended := make(chan error)
	go func() { _, err := r.Accept(); ended <- err }()
	time.Sleep(10 * time.Millisecond) // whether it waits for the client or for the seat, it ends
	if err := errors.Join(r.Close()); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// With TLS and HTTP/2, where one connection has many questions, it is the same.
func TestEncrypted(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint(http2), func(t *testing.T) {
			server := httptest.NewUnstartedServer(handler(t))
			server.EnableHTTP2 = http2
			server.Listener = Limit(server.Config, server.Listener, 2)
			server.StartTLS()
			defer server.Close()
			config := server.Client().Transport.(*http.Transport).TLSClientConfig
			ask := func(path string) *http.Response {
				t.Helper()
				transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: config.RootCAs}, ForceAttemptHTTP2: http2}
				t.Cleanup(transport.CloseIdleConnections)
				r, err := (&http.Client{Transport: transport, Timeout: patience}).Get(server.URL + path)
				if err != nil {
					t.Fatal(err)
				}
				if r.ProtoMajor == 2 != http2 {
					t.Errorf("it is %s", r.Proto)
				}
				return r
			}
			stays := ask("/wait")
			defer stays.Body.Close()
			for range 5 {
				r := ask("/")
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					t.Error(err)
				}
				_ = r.Body.Close()
			}
			time.Sleep(askMost + 100*time.Millisecond) // for longer than one may have to ask
			_ = ask("/").Body.Close()
			text := make([]byte, 5)
			if n, err := io.ReadFull(stays.Body, text[:4]); err != nil || n != 4 {
				t.Fatal(err)
			}
			read := make(chan error, 1)
			go func() { _, err := stays.Body.Read(text); read <- err }()
			select {
			case err := <-read:
				t.Errorf("who is being answered has lost the seat: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
		})
	}
}
