package helper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Serve greets, and answers questions until there are no more. It returns at once if whoever asks has
// ended, although to may be at work: the process is to end then. version is this program's.
func Serve(version string, in, out *os.File, to func(name string, with []byte) (any, error)) error {
	done, gone := make(chan error, 1), make(chan bool)
	go func() { done <- answers(version, in, out, to) }()
	go func() { // it ends when the other end of a pipe is closed, as answers does
		waitForHangUp(int(in.Fd()))
		close(gone)
	}()
	select {
	case err := <-done:
		return err
	case <-gone:
		return nil
	}
}

// waitForHangUp waits until nobody has the other end of a pipe. It waits for ever if fd is no pipe.
func waitForHangUp(fd int) {
	for {
		look := []unix.PollFd{{Fd: int32(fd)}}
		if n, err := unix.Poll(look, -1); n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func answers(version string, in io.Reader, out io.Writer, to func(name string, with []byte) (any, error)) error {
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	if err := encoder.Encode(greeting{&version}); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	for {
		var q question
		if err := decoder.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a question: %w", err)
		}
		value, err := to(q.Name, q.With)
		a := answer{Error: failureOf(err)}
		if err == nil {
			if a.Value, err = pack(value); err != nil {
				a = answer{Error: failureOf(err)}
			}
		}
		if err := encoder.Encode(a); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
}

// Unknown is the error for a question that a helper does not know.
func Unknown(name string) error {
	return fmt.Errorf("the helper does not know %q: it is of another version than weir", name)
}
