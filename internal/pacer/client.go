package pacer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/background"
	"github.com/weir-io/weir/internal/state"
)

// A Client asks the pacer of this host, and starts it if it does not run.
type Client struct{ State state.Dir }

// ask is a question to the pacer; an empty one asks whether it is there.
type ask struct {
	Add    *Job   `json:"add,omitempty"`
	Remove *Place `json:"remove,omitempty"` // a limited group
	Seen   *Place `json:"seen,omitempty"`   // a limited group
}

// answer is the pacer's.
type answer struct {
	Error string `json:"error,omitempty"`
	Note  string `json:"note,omitempty"` // what there is to say of its accuracy
	Seen  *Seen  `json:"seen,omitempty"` // of a group that is counted by CountEscaped
}

const (
	socketName = "pacer.sock"
	// startMax is how long a pacer may take to start, and an answer to come.
	startMax  = 10 * time.Second
	startLook = 10 * time.Millisecond
	// startAgain is after how long another pacer is started: one gives up where a sweep has
	// the lock for longer than takeOverMax.
	startAgain = 2 * takeOverMax
)

// Add has the pacer hold a group, in place of what it held of it. note is what there is to
// say of the accuracy.
func (c Client) Add(j Job) (note string, err error) {
	if err := j.check(); err != nil {
		return "", err
	}
	a, err := c.ask(ask{Add: &j})
	return a.Note, err
}

// Remove has the pacer let a group go. One that was killed is started again for that: else
// the next would take the group over from the record. One that runs is asked in any case:
// what a weir has asked it that was killed may not be on record yet.
func (c Client) Remove(limited Place) error {
	q := ask{Remove: &limited}
	for {
		jobs, err := Paced(c.State)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(jobs, func(j Job) bool { return j.Limited == limited }) {
			_, err = c.ask(q)
			return err
		}
		a, err := c.once(q)
		var closed *endedError
		switch {
		case err != nil && isDown(err): // nobody holds it
			return nil
		case err == nil && a.Error != "":
			return errors.New(a.Error)
		case !errors.As(err, &closed): // else it is down now, or has put the group on record before
			return err
		}
	}
}

func isDown(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED)
}

// start is Start, but in tests.
var start = Start

// ask asks, and starts a pacer where none is. One that ends just then is asked again.
func (c Client) ask(q ask) (a answer, err error) {
	var started time.Time
	for began := time.Now(); ; time.Sleep(startLook) {
		a, err = c.once(q)
		var closed *endedError
		switch {
		case err == nil && a.Error != "":
			return a, errors.New(a.Error)
		case err == nil, time.Since(began) > startMax:
			return a, err
		case errors.As(err, &closed):
			started = time.Time{}
		case !isDown(err):
			return a, err
		case time.Since(started) > startAgain:
			if err := start(); err != nil {
				return a, err
			}
			started = time.Now()
		}
	}
}

// endedError says that the pacer has ended while it was asked.
type endedError struct{ error }

func (e *endedError) Unwrap() error { return e.error }

func (c Client) once(q ask) (a answer, err error) {
	conn, err := net.DialTimeout("unix", filepath.Join(c.State.Path(), socketName), startMax)
	if err != nil {
		return a, fmt.Errorf("ask the pacer: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(startMax)); err != nil {
		return a, fmt.Errorf("ask the pacer: %w", err)
	}
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return a, &endedError{fmt.Errorf("ask the pacer: %w", err)}
	}
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		return a, &endedError{fmt.Errorf("ask the pacer: %w", err)}
	}
	return a, nil
}

// PacerArg makes weir the pacer: see Serve.
const PacerArg = "__pacer"

// Start starts a pacer in the background, which ends at once if one runs.
func Start() error {
	cmd := background.Command(PacerArg)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the pacer: %w", err)
	}
	return cmd.Process.Release()
}
