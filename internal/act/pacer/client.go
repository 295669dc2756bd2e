package pacer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// A Client sends requests to the pacer of this host, and starts the pacer if it is not running.
type Client struct {
	State state.Dir
	FS    *cgroupfs.FS // in which groups are released if no pacer can be started; nil: they are not
}

// ask is a request to the pacer. An empty one asks whether the pacer is running.
type ask struct {
	Add    *Job   `json:"add,omitempty"`
	Remove *Place `json:"remove,omitempty"` // a limited group
	Seen   *Place `json:"seen,omitempty"`   // a limited group
	Sums   bool   `json:"sums,omitempty"`   // of all groups
}

// answer is the pacer's reply.
type answer struct {
	Error string `json:"error,omitempty"`
	Note  string `json:"note,omitempty"` // what there is to say of its accuracy
	Seen  *Seen  `json:"seen,omitempty"` // of a group that is counted by CountEscaped
	Sums  []Sum  `json:"sums,omitzero"`  // nil: an older weir's pacer, which does not know the question
	later bool   // it is to be asked for again: see askers.again
}

const (
	socketName = "pacer.sock"
	// startMax is how long a pacer may take to start, and a reply to arrive.
	startMax  = 10 * time.Second
	startLook = 10 * time.Millisecond
	// startAgain is when another pacer is started: one gives up if a sweep holds the lock for
	// longer than takeOverMax.
	startAgain = 2 * takeOverMax
)

// Add has the pacer hold a group, in place of what it held for the group before. note says what
// to know about the accuracy.
func (c Client) Add(j Job) (note string, err error) {
	if err := j.check(); err != nil {
		return "", err
	}
	a, err := c.ask(ask{Add: &j})
	return a.Note, err
}

// Remove has the pacer release a group. If the pacer was killed, Remove starts it again first,
// because otherwise the next pacer would take the group over from its record. A running pacer
// is asked in any case: the request of a killed weir may not be on record yet. If no pacer can be
// started, this process releases the group: it is not to stay paused for that.
func (c Client) Remove(limited Place) error {
	q := ask{Remove: &limited}
	for began := time.Now(); ; time.Sleep(startLook) {
		jobs, err := readableOf(c.State, limited)
		if err != nil {
			return err
		}
		if len(jobs) > 0 {
			_, err = c.ask(q)
			if none := (*StartError)(nil); c.FS != nil && errors.As(err, &none) {
				return c.release(limited)
			}
			return err
		}
		a, err := c.once(q, startMax)
		var closed *endedError
		switch {
		case err != nil && isDown(err): // nobody holds it
			return nil
		case err == nil && a.Error != "":
			return errors.New(a.Error)
		case !errors.As(err, &closed): // else it is down now, or has put the group on record before
			return err
		case time.Since(began) > startMax:
			return c.unheard(err)
		}
	}
}

// release is Remove without a pacer.
func (c Client) release(limited Place) error {
	lock, err := lockOfDead(c.State)
	if err != nil {
		return err
	}
	if lock == nil { // there is one by now
		_, err = c.ask(ask{Remove: &limited})
		return err
	}
	defer lock.Unlock()
	err = state.Sweep(c.State, recordKind, func(j Job) error {
		if j.Limited != limited {
			return state.ErrKeep
		}
		return j.Release(c.FS)
	})
	if state.IsDamaged(err) { // another's record, of which Sweep tells
		err = nil
	}
	return err
}

func isDown(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED)
}

// start is begin, except in tests.
var start = begin

// ask sends a request, and starts a pacer if there is none. If the pacer ends meanwhile, it
// asks again. If what it has started is no pacer, the error is a *fault.Unsupported.
func (c Client) ask(q ask) (a answer, err error) {
	var started time.Time
	var own *starting
	for began := time.Now(); ; time.Sleep(startLook) {
		a, err = c.once(q, startMax)
		var closed *endedError
		switch {
		case err == nil && a.Error != "":
			return a, errors.New(a.Error)
		case err == nil, time.Since(began) > startMax:
			return a, c.unheard(err)
		case errors.As(err, &closed):
			started = time.Time{}
		case !isDown(err):
			return a, err
		case time.Since(started) > startAgain:
			if own, err = start(); err != nil {
				return a, err
			}
			started = time.Now()
		default:
			if err := own.failed(); err != nil {
				return a, err
			}
		}
	}
}

// unheard adds to an error what to do about a pacer that keeps others from starting, and has no socket.
func (c Client) unheard(err error) error {
	if err == nil || !isDown(err) {
		return err
	}
	lock, failed := c.State.Own(lockName)
	if failed != nil || lock != nil {
		lock.Unlock()
		return err
	}
	return fmt.Errorf("%w: a pacer runs, and cannot be asked there; end it (the process %q), and weir starts another", err, "weir "+PacerArg)
}

// endedError says that the pacer ended before it replied.
type endedError struct{ error }

func (e *endedError) Unwrap() error { return e.error }

// once sends a request to the pacer that is running, and waits for its answer for most at most.
func (c Client) once(q ask, most time.Duration) (a answer, err error) {
	until := time.Now().Add(most)
	conn, err := net.DialTimeout("unix", filepath.Join(c.State.Path(), socketName), most)
	if err != nil {
		return a, fmt.Errorf("ask the pacer: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(until); err != nil {
		return a, fmt.Errorf("ask the pacer: %w", err)
	}
	question, err := rawtext.Marshal(q)
	if err != nil {
		return a, fmt.Errorf("ask the pacer: %w", err)
	}
	if _, err := conn.Write(append(question, '\n')); err != nil {
		return a, &endedError{fmt.Errorf("ask the pacer: %w", err)}
	}
	var text json.RawMessage
	if err = json.NewDecoder(conn).Decode(&text); err == nil {
		err = rawtext.Unmarshal(text, &a)
	}
	if err != nil {
		return a, &endedError{fmt.Errorf("ask the pacer: %w", err)}
	}
	return a, nil
}
