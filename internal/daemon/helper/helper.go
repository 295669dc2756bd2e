// Package helper lets a process of weir ask another one: a helper, which is this program in one of
// its roles (package self). A helper has what is too heavy to be linked into weir: BPF programs,
// and the YAML library. It answers the questions that it reads, one JSON document each, until
// there are no more. If the process that asks is killed, the helper ends, and the kernel removes what the
// helper has loaded.
package helper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/bpf"
)

// A question is what a helper reads.
type question struct {
	Name string          `json:"name"`
	With json.RawMessage `json:"with,omitempty"`
}

// An answer is what a helper writes.
type answer struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error *failure        `json:"error,omitempty"` // nil: there is a value
}

// A Helper is a running helper. Several goroutines may ask it; it answers one at a time.
type Helper struct {
	role  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended sync.Once
	said  *tail

	mu      sync.Mutex
	encoder *json.Encoder
	decoder *json.Decoder
}

// A Starter starts helpers. The zero Starter refuses: only a program that runs weir's roles when it
// is started anew (package self) has a useful one.
type Starter struct {
	ready   bool
	missing func() error
}

// Own starts helpers as this program. missing is why there are none, for example because weird is
// not there; nil, or an answer of nil: there are.
func Own(missing func() error) Starter { return Starter{true, missing} }

// Missing is why no helper can be started, as far as that is known; nil: one can.
func (s Starter) Missing() error {
	switch {
	case !s.ready:
		return &fault.Unsupported{Feature: "start a helper", Reason: "this program does not run weir's helpers"}
	case s.missing == nil:
		return nil
	}
	return s.missing()
}

// Start starts a helper. It is in a process group of its own, so that Ctrl-C reaches only weir.
func (s Starter) Start(role string) (*Helper, error) {
	if err := s.Missing(); err != nil {
		return nil, err
	}
	h := &Helper{role: role, cmd: exec.Command("/proc/self/exe", role), said: &tail{}}
	h.cmd.Args[0] = "weir"
	h.cmd.Stderr = h.said
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := h.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a helper: %w", err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a helper: %w", err)
	}
	if err := h.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a helper: %w", err)
	}
	h.in, h.encoder, h.decoder = in, json.NewEncoder(in), json.NewDecoder(out)
	return h, nil
}

// Ask asks, and waits for the answer. A helper that is still at it when the context ends is
// killed, and answers no more.
func (h *Helper) Ask(ctx context.Context, name string, with, value any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	text, err := json.Marshal(with)
	if err != nil {
		return fmt.Errorf("ask a helper: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = h.cmd.Process.Kill() })()
	var a answer
	if err = h.encoder.Encode(question{name, text}); err == nil {
		err = h.decoder.Decode(&a)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("the helper %s ended: %w%s", h.role, err, h.said)
	case a.Error != nil:
		return a.Error.err()
	case value == nil:
		return nil
	}
	return json.Unmarshal(a.Value, value)
}

// Close ends the helper, and waits for it.
func (h *Helper) Close() error {
	h.ended.Do(func() {
		_ = h.in.Close()
		_ = h.cmd.Wait() // what it had to say, it has answered
	})
	return nil
}

// A tail is the end of what a helper says beside its answers: why Go ended it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailMost = 2048

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailMost):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := bytes.TrimSpace(t.text); len(text) > 0 {
		return ": " + string(text)
	}
	return ""
}

// Serve answers questions, until there are no more.
func Serve(in io.Reader, out io.Writer, to func(name string, with []byte) (any, error)) error {
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
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
			if a.Value, err = json.Marshal(value); err != nil {
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

// A failure is an error on its way to whoever asked.
type failure struct {
	Text        string           `json:"text"`
	Class       fault.Class      `json:"class,omitempty"`
	Number      unix.Errno       `json:"errno,omitempty"`
	Path        *pathFailure     `json:"path,omitempty"`
	Unavailable *bpf.Unavailable `json:"unavailable,omitempty"`
}

// A pathFailure is an fs.PathError.
type pathFailure struct{ Op, Path, Cause string }

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error(), Class: fault.ClassOf(err)}
	_ = errors.As(err, &f.Number)
	var path *fs.PathError
	if errors.As(err, &path) {
		f.Path = &pathFailure{path.Op, path.Path, path.Err.Error()}
	}
	var cannot *bpf.Unavailable
	if errors.As(err, &cannot) {
		f.Unavailable = &bpf.Unavailable{Op: cannot.Op, Reason: cannot.Reason, Remedy: cannot.Remedy}
	}
	return f
}

func (f *failure) err() error {
	if f.Unavailable != nil {
		return f.Unavailable
	}
	return &told{*f}
}

// told is an error that a helper has told of.
type told struct{ failure }

func (e *told) Error() string { return e.Text }

// Class is the one that the error had in the helper.
func (e *told) Class() fault.Class { return e.failure.Class }

func (e *told) Unwrap() error {
	var cause error
	if e.Number != 0 {
		cause = e.Number
	}
	if e.Path == nil {
		return cause
	}
	if cause == nil {
		cause = errors.New(e.Path.Cause)
	}
	return &fs.PathError{Op: e.Path.Op, Path: e.Path.Path, Err: cause}
}
