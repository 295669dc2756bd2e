package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/daemon/socket"
	"github.com/weir-io/weir/internal/targets"
)

const (
	// answerBytesMax bounds an answer; one about a container has some kilobytes. A list has all
	// containers, with their labels.
	answerBytesMax = 64 << 20
	// askMost is how many containers are asked for by their ids: the ids of more make a long line.
	askMost = 32

	statusOK       = 200
	statusNotFound = 404
)

// A daemon is an engine behind a socket.
type daemon struct{ socket string }

// A refusal is an error answer.
type refusal struct {
	status  int // of HTTP
	message string
}

func (e *refusal) Error() string { return fmt.Sprintf("%d: %s", e.status, e.message) }

// inspect asks for one container, by a name for which isName is true.
func (e daemon) inspect(ctx context.Context, name string) (container, error) {
	var c container
	a, err := e.get(ctx, "/containers/"+name+"/json")
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(a.body, &c); err != nil {
		return c, fmt.Errorf("read answer: %w", err)
	}
	c.api, c.by = a.api, a.by
	if !targets.IsContainerID(c.ID) {
		return c, fmt.Errorf("read answer: %q is no container's id", c.ID)
	}
	return c, nil
}

// A listed is a running container with its names and labels.
type listed struct {
	ID     string
	Names  []string
	Labels map[string]string
}

// list lists the running containers; with ids, or beginnings of them, those alone. An engine that does
// not know such a question lists others too. stopped: those that do not run, too.
func (e daemon) list(ctx context.Context, stopped bool, ids []string) ([]listed, error) {
	query := url.Values{}
	if stopped {
		query.Set("all", "true")
	}
	if len(ids) > 0 && len(ids) <= askMost {
		filters, err := json.Marshal(map[string][]string{"id": ids})
		if err != nil {
			return nil, err
		}
		query.Set("filters", string(filters))
	}
	path := "/containers/json"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	a, err := e.get(ctx, path)
	if err != nil {
		return nil, err
	}
	var all []listed
	if err := json.Unmarshal(a.body, &all); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return all, nil
}

// An answer is what an engine says.
type answer struct {
	body []byte
	api  string // the newest version of the API that it has: "1.45"; empty: it does not say
	by   string // the engine's own version: "26.1.5"; empty: it does not say
}

// get requests a path, in the newest version of the API that the daemon has. The daemon answers
// HTTP/1.0 in one piece and closes the connection.
func (e daemon) get(ctx context.Context, path string) (answer, error) {
	return e.ask(ctx, "GET "+path+" HTTP/1.0\r\nHost: docker\r\n\r\n")
}

// post sends the daemon JSON.
func (e daemon) post(ctx context.Context, path string, body []byte) error {
	_, err := e.ask(ctx, fmt.Sprintf("POST %s HTTP/1.0\r\nHost: docker\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body))
	return err
}

func (e daemon) ask(ctx context.Context, question string) (a answer, err error) {
	_, err = socket.Ask(ctx, e.socket, func(conn io.ReadWriter) ([]byte, error) {
		if _, err := io.WriteString(conn, question); err != nil {
			return nil, err
		}
		a, err = readAnswer(io.LimitReader(conn, answerBytesMax+1))
		return nil, err
	})
	return a, err
}

// readAnswer reads a response to its end. For an error response it returns a *refusal with
// Docker's message.
func readAnswer(from io.Reader) (a answer, err error) {
	in := bufio.NewReader(from)
	line, err := in.ReadString('\n')
	if err != nil {
		return a, cutShort(err)
	}
	protocol, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || !strings.HasPrefix(protocol, "HTTP/1.") {
		return a, errors.New("the answer is not HTTP")
	}
	length := int64(-1)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return a, cutShort(err)
		}
		if line = strings.TrimSpace(line); line == "" {
			break
		}
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.ToLower(key) {
		case "content-length":
			if length, err = strconv.ParseInt(value, 10, 64); err != nil {
				return a, fmt.Errorf("read answer: length %q", value)
			}
		case "api-version":
			a.api = value
		case "server": // "Docker/26.1.5 (linux)"
			_, version, _ := strings.Cut(value, "/")
			a.by, _, _ = strings.Cut(version, " ")
		case "transfer-encoding":
			return a, fmt.Errorf("read answer: it is %s, which HTTP/1.0 does not have; name the engine's own socket", short(value))
		}
	}
	body, err := io.ReadAll(in)
	switch {
	case err != nil:
		return a, cutShort(err)
	case len(body) > answerBytesMax:
		return a, fmt.Errorf("read answer: it has more than %d bytes", answerBytesMax)
	case length >= 0 && int64(len(body)) < length:
		return a, cutShort(io.ErrUnexpectedEOF)
	case length >= 0:
		body = body[:length]
	}
	if status != statusOK {
		return a, refused(status, body)
	}
	a.body = body
	return a, nil
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("read answer: it ends in the middle")
	}
	return fmt.Errorf("read answer: %w", err)
}

// refused reads {"message": "..."}, the form of all of Docker's errors.
func refused(status int, body []byte) error {
	var said struct{ Message string }
	if err := json.Unmarshal(body, &said); err != nil {
		said.Message = "no message"
	}
	return &refusal{status, said.Message}
}

// plainMost bounds text that others wrote, in bytes.
const plainMost = 300

func short(text string) string { return plain.Short(text, plainMost) }
