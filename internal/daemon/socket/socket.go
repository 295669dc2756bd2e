// Package socket asks the daemons of a host, which answer at unix sockets.
package socket

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// AnswerMax bounds a question, if the context does not: a daemon answers in milliseconds,
// and waits for a container's own lock while that starts or stops.
const AnswerMax = 10 * time.Second

// Ask connects to a socket and has exchange ask. Errors of the connection are the
// kernel's own, without operation and address: messages name the socket already. After
// the end of the context the error is its cause.
func Ask(ctx context.Context, path string, exchange func(conn io.ReadWriter) ([]byte, error)) ([]byte, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		short, cancel := context.WithTimeout(ctx, AnswerMax)
		defer cancel()
		ctx = short
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, plainly(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	answer, err := exchange(plain{conn})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	return answer, err
}

// plain is a connection whose errors are plain.
type plain struct{ conn net.Conn }

func (p plain) Read(b []byte) (int, error) {
	n, err := p.conn.Read(b)
	return n, plainly(err)
}

func (p plain) Write(b []byte) (int, error) {
	n, err := p.conn.Write(b)
	return n, plainly(err)
}

func plainly(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
