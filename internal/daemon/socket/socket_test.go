package socket

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a socket says of itself is the kernel's own word.
func TestAsk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ask := func(ctx context.Context) ([]byte, error) {
		return Ask(ctx, path, func(conn io.ReadWriter) ([]byte, error) { return io.ReadAll(conn) })
	}
	if _, err := ask(t.Context()); !errors.Is(err, unix.ENOENT) || isOp(err) {
		t.Errorf("no socket: %v", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	// A listener that never accepts: the connection stands, and nothing comes.
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) || isOp(err) || time.Since(began) > AnswerMax/2 {
		t.Errorf("no answer: %v after %s", err, time.Since(began))
	}
	go func() {
		for range 2 { // the first is the one above
			if conn, err := listener.Accept(); err == nil {
				_, _ = io.WriteString(conn, "yes")
				_ = conn.Close()
			}
		}
	}()
	if answer, err := ask(t.Context()); err != nil || string(answer) != "yes" {
		t.Errorf("%q, %v", answer, err)
	}
	if err := errors.Join(unix.Unlink(path), unix.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t.Context()); !errors.Is(err, unix.ECONNREFUSED) || isOp(err) {
		t.Errorf("no socket but a pipe: %v", err)
	}
	if err := listener.Close(); err != nil && !errors.Is(err, unix.ENOENT) {
		t.Error(err)
	}
}

func isOp(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}
