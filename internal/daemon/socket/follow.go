package socket

import (
	"context"
	"io"
	"net"
	"time"
)

// Follow is Ask for an answer without an end. exchange must call begun when the answer has begun,
// for which there is AnswerMax. After that only the end of the context bounds it.
func Follow(ctx context.Context, path string, exchange func(conn io.ReadWriter, begun func()) error) error {
	first, cancel := context.WithTimeout(ctx, AnswerMax)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(first, "unix", path)
	if err != nil {
		return plainly(err)
	}
	defer conn.Close()
	interrupt := func() { _ = conn.SetDeadline(time.Unix(1, 0)) }
	defer context.AfterFunc(ctx, interrupt)()
	waits := context.AfterFunc(first, interrupt)
	defer waits()
	err = exchange(plain{conn}, func() { waits() })
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil && first.Err() != nil && waits() {
		return first.Err()
	}
	return err
}
