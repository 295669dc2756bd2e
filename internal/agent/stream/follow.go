package stream

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/plain"
)

// errAbsent says that no weird runs.
var errAbsent = errors.New("weird does not run")

// errSilent says that weird does not answer.
var errSilent = errors.New("weird does not answer")

// errEnded says that the answer has ended as a whole answer does.
var errEnded = errors.New("weird has ended")

// errCut says that the answer has ended in the middle.
var errCut = errors.New("weird has ended in the middle of an event, so it was stopped or killed; see why with systemctl status weird")

// errLong says that a line has no end.
var errLong = fmt.Errorf("weird tells a line of more than %d MB, which no weird of this version does; update weir and weird together, and restart weird", eventMost>>20)

// endedLeast is how long an answer lasted that is asked for again at once when it has ended.
const endedLeast = 2 * time.Second

// follow has each called with each reading, until something is wrong. The error is for people, and never nil.
func follow(ctx context.Context, o Options, each func(Reading)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	socket, also, most := o.Socket, o.Also, cmp.Or(o.patience, silentMost)
	silent := time.AfterFunc(max(answerMost, o.patience), func() { cancel(errSilent) })
	defer silent.Stop()
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: headersMost, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if errors.Is(err, fs.ErrPermission) && also != "" {
			return (&net.Dialer{}).DialContext(ctx, "unix", also)
		}
		return conn, err
	}}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://weird"+Route, nil)
	if err != nil {
		return err
	}
	r, err := client.Do(request)
	if err != nil {
		return wrong(ctx, socket, err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return refused(r)
	}
	silent.Reset(most)
	return wrong(ctx, socket, read(ctx, r.Body, func(v Reading) {
		silent.Reset(most)
		each(v)
	}))
}

// wrong is what is wrong, for people.
func wrong(ctx context.Context, socket string, err error) error {
	var version *versionError
	var asked *url.Error
	var dial *net.OpError
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSilent), errors.Is(err, unix.EAGAIN): // it does not take clients
		return errSilent
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return errAbsent
	case errors.Is(err, fs.ErrPermission):
		return errors.New("only root and users in the groups weir-read and weir can ask weird")
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("connect to %s: %w; see what is at this path with ls -l, remove it if it is not weird's, and restart weird", plain.Brief(socket), reason(dial))
	case errors.Is(err, errCut), errors.Is(err, errLong):
		return err
	case errors.Is(err, io.EOF):
		return errEnded
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return errors.New("weird has ended")
	case errors.As(err, &version):
		return version
	case errors.As(err, &asked):
		return fmt.Errorf("what weird says cannot be read: %w", asked.Err)
	}
	return err
}

// reason is the kernel's answer to a call, or else the error itself.
func reason(err *net.OpError) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err.Err
}

// refused is why weird does not tell.
func refused(r *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(r.Body, refusalMost))
	var doc api.Error
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	switch {
	case r.StatusCode == http.StatusNotFound:
		return &versionError{}
	case err == nil && doc.Error != "":
		return fmt.Errorf("weird answers: %s", plain.Brief(doc.Error))
	}
	return fmt.Errorf("weird answers with status %d", r.StatusCode)
}

// read reads a stream of server-sent events (HTML standard, 9.2) to its end.
func read(ctx context.Context, stream io.Reader, each func(Reading)) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(make([]byte, 0, 64<<10), eventMost)
	lines.Split(whole)
	var s state
	name, last := "", time.Time{}
	for lines.Scan() {
		line := lines.Bytes()
		if rest, is := bytes.CutPrefix(line, []byte("event: ")); is {
			name = string(rest[:min(len(rest), len("trouble")+1)])
			continue
		}
		data, is := bytes.CutPrefix(line, []byte("data: "))
		if !is {
			continue
		}
		switch name {
		case "trouble":
			return trouble(data)
		case api.TopEventName:
			done, err := s.take(data)
			if err != nil {
				return err
			}
			if !done {
				continue
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(readingLeast - time.Since(last)):
			}
			last = time.Now()
			each(s.view)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return errLong
	case err != nil && !errors.Is(err, errCut):
		return fmt.Errorf("what weird says cannot be read: %w", err)
	case err != nil:
		return err
	}
	return io.EOF
}

// trouble is why weird cannot read.
func trouble(data []byte) error {
	var doc api.Error
	if json.Unmarshal(data, &doc) != nil || doc.Error == "" {
		return errors.New("weird cannot read the groups, and does not say why; see its messages with journalctl -u weird")
	}
	return fmt.Errorf("weird cannot read the groups: %s", plain.Brief(doc.Error))
}

// whole splits a stream into lines, as bufio.ScanLines does. What has no end of a line is no line: it was cut.
func whole(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if atEOF && len(data) > 0 && bytes.IndexByte(data, '\n') < 0 {
		return 0, nil, errCut
	}
	return bufio.ScanLines(data, atEOF)
}
