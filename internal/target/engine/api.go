package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/socket"
	"github.com/weir-io/weir/internal/target"
)

const (
	// answerBytesMax bounds an answer; one about a container has some kilobytes.
	answerBytesMax = 8 << 20

	statusOK       = 200
	statusNotFound = 404
)

// A daemon is an engine's behind a socket.
type daemon struct{ socket string }

// A refusal is an answer that is an error.
type refusal struct {
	status  int // of HTTP
	message string
}

func (e *refusal) Error() string { return fmt.Sprintf("%d: %s", e.status, e.message) }

// inspect asks for one container, by a name that isName.
func (e daemon) inspect(ctx context.Context, name string) (container, error) {
	var c container
	body, err := e.get(ctx, "/containers/"+name+"/json")
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return c, fmt.Errorf("read answer: %w", err)
	}
	if !target.IsContainerID(c.ID) {
		return c, fmt.Errorf("read answer: %q is no container's id", c.ID)
	}
	return c, nil
}

// A listed is a container that runs, with its names.
type listed struct {
	ID    string
	Names []string
}

func (e daemon) list(ctx context.Context) ([]listed, error) {
	body, err := e.get(ctx, "/containers/json")
	if err != nil {
		return nil, err
	}
	var all []listed
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return all, nil
}

// get asks for a path, of the newest version of the API that the daemon has. HTTP/1.0 is
// answered in one piece, and then the daemon hangs up.
func (e daemon) get(ctx context.Context, path string) ([]byte, error) {
	return socket.Ask(ctx, e.socket, func(conn io.ReadWriter) ([]byte, error) {
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.0\r\nHost: docker\r\n\r\n"); err != nil {
			return nil, err
		}
		return readAnswer(io.LimitReader(conn, answerBytesMax+1))
	})
}

// readAnswer reads a response to its end, and returns its body. One that is an error
// gives a *refusal with Docker's message.
func readAnswer(from io.Reader) ([]byte, error) {
	in := bufio.NewReader(from)
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, cutShort(err)
	}
	protocol, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || !strings.HasPrefix(protocol, "HTTP/1.") {
		return nil, errors.New("what answers there does not speak HTTP")
	}
	length := int64(-1)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, cutShort(err)
		}
		if line = strings.TrimSpace(line); line == "" {
			break
		}
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.ToLower(key) {
		case "content-length":
			if length, err = strconv.ParseInt(value, 10, 64); err != nil {
				return nil, fmt.Errorf("read answer: length %q", value)
			}
		case "transfer-encoding":
			return nil, fmt.Errorf("read answer: it is %s, which HTTP/1.0 has not; name the engine's own socket", plain(value))
		}
	}
	body, err := io.ReadAll(in)
	switch {
	case err != nil:
		return nil, cutShort(err)
	case len(body) > answerBytesMax:
		return nil, fmt.Errorf("read answer: it has more than %d bytes", answerBytesMax)
	case length >= 0 && int64(len(body)) < length:
		return nil, cutShort(io.ErrUnexpectedEOF)
	case length >= 0:
		body = body[:length]
	}
	if status != statusOK {
		return nil, refused(status, body)
	}
	return body, nil
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("read answer: it ends in the middle")
	}
	return fmt.Errorf("read answer: %w", err)
}

// refused reads {"message": "..."}, which each of Docker's errors is.
func refused(status int, body []byte) error {
	var said struct{ Message string }
	if err := json.Unmarshal(body, &said); err != nil {
		said.Message = "no message"
	}
	return &refusal{status, said.Message}
}

// plain quotes what could move a terminal's cursor, and bounds what others wrote.
func plain(text string) string {
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return text
	}
	return strconv.QuoteToGraphic(text)
}
