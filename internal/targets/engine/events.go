package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/weir-io/weir/internal/daemon/socket"
	"github.com/weir-io/weir/internal/targets"
)

// An Event is a change of a container.
type Event struct {
	ID    string // the whole one
	Ended bool   // its processes have ended, or it was removed
	What  Change
}

// A Change is what has happened to a container, as far as others than it itself are to know.
type Change int

// The changes.
const (
	Other   Change = iota // it has started, stopped, or has other limits
	Made                  // it was made, and does not run yet
	Renamed               // it has another name
	Removed               // it is not there any more
)

// eventBytesMax bounds one event, which has all labels of the container. A larger one is skipped: a
// container with many labels keeps nobody from hearing of the others.
const eventBytesMax = 1 << 20

// actions are the changes that are asked for, and whether they end a container.
var actions = map[string]bool{"create": false, "start": false, "restart": false, "unpause": false, "update": false, "rename": false, "die": true, "died": true, "destroy": true, "remove": true}

var changes = map[string]Change{"create": Made, "rename": Renamed, "destroy": Removed, "remove": Removed}

// Events calls each for what becomes of containers, until the engine ends it or the context does.
// It calls all first, when no later change can be missed any more, and again when an event was so
// large that only a look at all containers tells what it was about.
func (k Kind) Events(ctx context.Context, all func(), each func(Event)) error {
	path, err := k.socket("")
	if err != nil {
		return err
	}
	filters := url.QueryEscape(`{"type":["container"]}`)
	err = socket.Follow(ctx, path, func(conn io.ReadWriter, begun func()) error {
		if _, err := io.WriteString(conn, "GET /events?stream=true&filters="+filters+" HTTP/1.0\r\nHost: docker\r\n\r\n"); err != nil {
			return err
		}
		in := bufio.NewReader(conn)
		if err := accepted(in); err != nil {
			return err
		}
		begun()
		all()
		return readEvents(in, all, each)
	})
	if err != nil && ctx.Err() == nil {
		return k.Maker.explain(k.Name(), path, err)
	}
	return err
}

// accepted reads the header of an answer, and the message of a refusal.
func accepted(in *bufio.Reader) error {
	var header strings.Builder
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return cutShort(err)
		}
		if header.Write(line); header.Len() > headerBytesMax {
			return errors.New("read answer: its header has no end")
		}
		if len(strings.TrimSpace(string(line))) == 0 {
			break
		}
	}
	if protocol, rest, _ := strings.Cut(header.String(), " "); strings.HasPrefix(protocol, "HTTP/1.") && strings.HasPrefix(rest, "200 ") {
		if strings.Contains(strings.ToLower(header.String()), "transfer-encoding:") {
			return errors.New("read answer: it is in pieces, which HTTP/1.0 does not have; name the engine's own socket")
		}
		return nil
	}
	_, err := readAnswer(io.MultiReader(strings.NewReader(header.String()), io.LimitReader(in, answerBytesMax)))
	if err == nil {
		err = errors.New("read answer: it is no stream of events")
	}
	return err
}

const headerBytesMax = 64 << 10

// readEvents reads JSON documents, lines of them, as Docker and Podman write them.
func readEvents(from io.Reader, all func(), each func(Event)) error {
	for in := bufio.NewReader(from); ; {
		line, whole, err := readLine(in)
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("the stream of events has ended")
		case err != nil:
			return err
		case !whole:
			all()
			continue
		}
		for decoder := json.NewDecoder(bytes.NewReader(line)); ; {
			var said struct {
				Action string
				Actor  struct{ ID string }
			}
			err := decoder.Decode(&said)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("read events: %w", err)
			}
			if ended, is := actions[said.Action]; is && targets.IsContainerID(said.Actor.ID) {
				each(Event{said.Actor.ID, ended, changes[said.Action]})
			}
		}
	}
}

// readLine reads a line. Of one that is too long nothing is kept.
func readLine(in *bufio.Reader) (line []byte, whole bool, err error) {
	for whole = true; ; {
		part, err := in.ReadSlice('\n')
		if whole = whole && len(line)+len(part) <= eventBytesMax; whole {
			line = append(line, part...)
		} else {
			line = nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (len(line) > 0 || !whole):
			return nil, false, cutShort(err)
		}
		return line, whole, err
	}
}
