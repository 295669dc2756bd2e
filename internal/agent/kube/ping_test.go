package kube

import (
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// A between forwards connections to a server until it forgets them: then they stay open, and nothing
// comes through.
type between struct {
	net.Listener
	server string

	mu     sync.Mutex
	forget chan struct{}
	made   int
}

func (b *between) run() {
	for {
		client, err := b.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", b.server)
		if err != nil {
			_ = client.Close()
			return
		}
		b.mu.Lock()
		b.made++
		forget := b.forget
		b.mu.Unlock()
		for from, to := range map[net.Conn]net.Conn{client: server, server: client} {
			go func() {
				defer to.Close()
				for piece := make([]byte, 4096); ; {
					n, err := from.Read(piece)
					select {
					case <-forget:
						_, _ = io.Copy(io.Discard, from) // taken, and not passed on
						return
					default:
					}
					if _, failed := to.Write(piece[:n]); err != nil || failed != nil {
						return
					}
				}
			}()
		}
	}
}

// A watch on a connection that a firewall has forgotten ends soon, and the next request has another
// connection.
func TestForgottenConnection(t *testing.T) {
	lab.Unit(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watch" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &between{Listener: l, server: server.Listener.Addr().String(), forget: make(chan struct{})}
	defer l.Close()
	go b.run()
	c, transport := clientAt(t, l, server)
	defer transport.CloseIdleConnections()
	if pings := transport.HTTP2; pings == nil || pings.SendPingTimeout != pingEvery || pings.PingTimeout != pingMost {
		t.Fatalf("%+v", pings)
	}
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 50 * time.Millisecond, PingTimeout: 3 * time.Second} // as if time went faster
	ctx, stop := context.WithTimeout(t.Context(), most)
	defer stop()
	r, err := c.do(ctx, http.MethodGet, "/watch", nil, "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.ProtoMajor != 2 {
		t.Fatal(r.Proto)
	}
	time.Sleep(time.Second) // a promise: pings that are answered do not end it
	b.mu.Lock()
	close(b.forget)
	b.forget = make(chan struct{})
	b.mu.Unlock()
	if _, err := io.ReadAll(r.Body); err == nil || ctx.Err() != nil {
		t.Fatalf("the watch ends with %v, %v", err, ctx.Err())
	}
	if err := c.send(ctx, http.MethodPost, "/x", "", nil); err != nil {
		t.Error(err)
	}
	if b.mu.Lock(); b.made != 2 {
		t.Errorf("%d connections", b.made)
	}
	b.mu.Unlock()
}

// A server that takes a connection and says nothing is given up soon, also for a watch, which may take long.
func TestASilentServer(t *testing.T) {
	lab.Unit(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	c, transport := clientAt(t, l, server)
	if transport.TLSHandshakeTimeout != requestTime {
		t.Fatal(transport.TLSHandshakeTimeout)
	}
	transport.TLSHandshakeTimeout = 50 * time.Millisecond // as if time went faster
	ctx, stop := context.WithTimeout(t.Context(), most)
	defer stop()
	f := &follower{client: c, path: "/api/v1/pods", patience: watchTime, version: "1"}
	if err := f.watch(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("the watch ends with %v, %v", err, ctx.Err())
	}
}

// clientAt makes a client that connects to a listener and trusts a server.
func clientAt(t *testing.T, l net.Listener, server *httptest.Server) (*Client, *http.Transport) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := NewClient("https://"+l.Addr().String(), token, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	return c, c.http.Transport.(*http.Transport)
}
