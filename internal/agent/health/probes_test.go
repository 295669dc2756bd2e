package health

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// Probes get 200, or 503 with the reason, and nobody gets anything else.
func TestProbes(t *testing.T) {
	lab.Unit(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var why atomic.Pointer[string]
	ready := func() error {
		if text := why.Load(); text != nil {
			return errors.New(*text)
		}
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ServeProbes(ctx, l, Probes{Live: func() error { return nil }, Ready: ready}) }()
	client := &http.Client{Timeout: most}
	ask := func(method, path string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+l.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
	expect := func(method, path string, status int, says string) {
		t.Helper()
		if got, text := ask(method, path); got != status || !strings.Contains(text, says) {
			t.Errorf("%s %s: %d %s", method, path, got, text)
		}
	}
	expect("GET", "/healthz", 200, "ok\n")
	expect("GET", "/readyz", 200, "ok\n")
	text := "no runtime"
	why.Store(&text)
	expect("GET", "/readyz", 503, `"error":"no runtime"`)
	expect("GET", "/healthz", 200, "ok\n")
	why.Store(nil)
	expect("GET", "/readyz", 200, "ok\n")
	expect("POST", "/readyz", 405, "this can only be read")
	expect("GET", "/status", 404, "/healthz and /readyz are")
	expect("GET", "/health", 404, "/healthz and /readyz are")

	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(most):
		t.Error("a client that says nothing keeps it from ending")
	}
}
