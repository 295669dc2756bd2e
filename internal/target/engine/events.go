package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/weir-io/weir/internal/socket"
	"github.com/weir-io/weir/internal/target"
)

// An Event is a change of a container.
type Event struct {
	ID    string // the whole one
	Ended bool   // its processes have ended, or it was removed
}

// eventBytesMax bounds one event. It has all labels of the container.
const eventBytesMax = 8 << 20

// actions are the changes that are asked for, and whether they end a container.
var actions = map[string]bool{"start": false, "restart": false, "unpause": false, "update": false, "rename": false, "die": true, "died": true, "destroy": true, "remove": true}

// Events calls each for what becomes of containers, until the engine ends it or the context does.
// It calls ready first, when no later change can be missed any more.
func (k Kind) Events(ctx context.Context, ready func(), each func(Event)) error {
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
		ready()
		return readEvents(in, each)
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

// readEvents reads JSON documents, one after the other.
func readEvents(from io.Reader, each func(Event)) error {
	bounded := &io.LimitedReader{R: from, N: eventBytesMax}
	for decoder := json.NewDecoder(bounded); ; {
		var said struct {
			Action string
			Actor  struct{ ID string }
		}
		switch err := decoder.Decode(&said); {
		case bounded.N <= 0:
			return fmt.Errorf("read events: one has more than %d bytes", eventBytesMax)
		case errors.Is(err, io.EOF):
			return errors.New("the stream of events has ended")
		case err != nil:
			return cutShort(err)
		}
		bounded.N = eventBytesMax
		if ended, is := actions[said.Action]; is && target.IsContainerID(said.Actor.ID) {
			each(Event{said.Actor.ID, ended})
		}
	}
}
