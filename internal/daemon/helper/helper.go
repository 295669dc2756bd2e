// Package helper lets a process of weir ask another one: a helper, which is weird in one of
// its roles (package self), or a program with these roles itself. A helper has what is too heavy to be linked into weir: BPF programs,
// and the YAML library. It answers the questions that it reads, one JSON document each, until
// there are no more. If the process that asks is killed, the helper ends, whatever it is at, and the
// kernel removes what the helper has loaded.
//
// The helper of weir is weird, a file that anybody can have exchanged, so nothing is taken on trust:
// it says its version first, an answer has a bound, and one that does nothing for a second is
// killed. All of that is one kind of error: this host cannot do what was asked, because of weird.
package helper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/fault"
)

// answerMost bounds an answer, in bytes: the files that all processes of a host have open are some
// ten MB.
const answerMost = 256 << 20

// A greeting is what a helper writes first.
type greeting struct {
	Weir *string `json:"weir"` // its version; nil: it is no helper
}

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
	starter Starter
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     io.ReadCloser
	ended   sync.Once
	said    *saying

	mu      sync.Mutex
	broken  error // why it is asked no more
	greeted bool
	encoder *json.Encoder
	decoder *json.Decoder
	left    *io.LimitedReader // of an answer
	most    int64             // answerMost, except in tests
}

// A Starter starts helpers. The zero Starter refuses: only a program that runs weir's roles when it
// is started anew (package self) has a useful one.
type Starter struct {
	name    string // of what answers; empty: nothing does
	version string
	program func() (path string, err error) // nil: this one
}

// Of starts a program as a helper. name is what answers then, for messages: "weird". version is
// this program's, and must be the helper's. program finds it, or says why there is none; nil: it is
// this program.
func Of(name, version string, program func() (path string, err error)) Starter {
	return Starter{name, version, program}
}

// Missing is why no helper can be started, as far as that is known; nil: one can.
func (s Starter) Missing() error {
	_, err := s.find()
	return err
}

func (s Starter) find() (path string, err error) {
	switch {
	case s.name == "":
		return "", &fault.Unsupported{Feature: "start a helper", Reason: "this program does not run weir's helpers"}
	case s.program == nil:
		return "/proc/self/exe", nil
	}
	return s.program()
}

// unfit is the error for a helper that does not do what helpers do.
func (s Starter) unfit(reason string) error {
	return &fault.Unsupported{Feature: "run " + s.name, Reason: reason, Remedy: "install weir and weird of one build again"}
}

// Start starts a helper. It is in a process group of its own, so that Ctrl-C reaches only weir.
func (s Starter) Start(role string) (*Helper, error) {
	program, err := s.find()
	if err != nil {
		return nil, err
	}
	h := &Helper{starter: s, cmd: exec.Command(program, role), said: &saying{}, most: answerMost}
	h.cmd.Args[0] = "weir" // people look for weir
	h.cmd.Stderr = h.said
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	h.cmd.WaitDelay = time.Second // if something that it has started keeps its streams
	in, err := h.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a helper: %w", err)
	}
	if h.out, err = h.cmd.StdoutPipe(); err != nil {
		return nil, fmt.Errorf("start a helper: %w", err)
	}
	if err := h.cmd.Start(); err != nil {
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			err = path.Err
		}
		return nil, s.unfit(program + ": " + err.Error())
	}
	h.left = &io.LimitedReader{R: h.out}
	h.in, h.encoder, h.decoder = in, json.NewEncoder(in), json.NewDecoder(h.left)
	return h, nil
}

// Ask asks, and waits for the answer. A helper that is still at it when the context ends is
// killed, and answers no more. So is one that hangs, or does not answer as helpers do: then the
// error is a *fault.Unsupported.
func (h *Helper) Ask(ctx context.Context, name string, with, value any) error {
	text, err := pack(with)
	if err != nil {
		return fmt.Errorf("ask a helper: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken != nil {
		return h.broken
	}
	a, err := h.exchange(ctx, question{name, text})
	switch {
	case err != nil:
		h.kill()
		h.broken = err
		return err
	case a.Error != nil:
		return a.Error.err()
	case value == nil:
		return nil
	}
	if err := Unpack(a.Value, value); err != nil {
		return h.starter.unfit("it does not answer what weir has asked: " + err.Error())
	}
	return nil
}

// exchange has one question answered, while it looks after the helper.
func (h *Helper) exchange(ctx context.Context, q question) (a answer, err error) {
	var said error
	done := make(chan bool)
	go func() {
		said = h.converse(q, &a)
		close(done)
	}()
	pulse, look := background.PulseOf(h.cmd.Process.Pid), time.NewTicker(background.PulseEvery)
	defer look.Stop()
	for {
		select {
		case <-done:
			return a, said
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-look.C:
			if pulse.Hangs() {
				err = h.starter.unfit("it does not answer")
			}
		}
		if err != nil {
			h.kill()
			<-done // the streams are closed
			return answer{}, err
		}
	}
}

func (h *Helper) converse(q question, a *answer) error {
	if !h.greeted {
		h.left.N = h.most
		var g greeting
		switch err := h.decoder.Decode(&g); {
		case err != nil:
			return h.ill(err)
		case g.Weir == nil:
			return h.starter.unfit("it is another program")
		case *g.Weir != h.starter.version:
			return h.starter.unfit(fmt.Sprintf("it is of version %.40q, and this weir of %q", *g.Weir, h.starter.version))
		}
		h.greeted = true
	}
	if err := h.encoder.Encode(q); err != nil {
		return h.ill(err)
	}
	h.left.N = h.most
	if err := h.decoder.Decode(a); err != nil {
		return h.ill(err)
	}
	return nil
}

// ill says what is wrong with a helper that could not be written to or read from.
func (h *Helper) ill(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax), errors.As(err, &kind):
		return h.starter.unfit("it is another program")
	case h.left.N == 0:
		return h.starter.unfit(fmt.Sprintf("its answer has more than %d bytes", h.most))
	}
	_ = h.Close() // then all that it has said is known
	reason := "it ended without an answer"
	if state := h.cmd.ProcessState; state != nil && !state.Success() {
		reason += " (" + state.String() + ")"
	}
	return h.starter.unfit(reason + h.said.String())
}

// kill ends the helper, and what it may have started, and closes its streams.
func (h *Helper) kill() {
	h.end()
	_ = h.out.Close()
	_ = h.in.Close()
}

func (h *Helper) end() {
	if h.cmd.Process.Kill() == nil { // it is not reaped yet, so the group is still its own
		_ = unix.Kill(-h.cmd.Process.Pid, unix.SIGKILL)
	}
}

// Close ends the helper, and waits for it.
func (h *Helper) Close() error {
	h.ended.Do(func() {
		_ = h.in.Close()
		done := make(chan bool)
		go func() {
			_ = h.cmd.Wait() // what it had to say, it has answered
			close(done)
		}()
		pulse, look := background.PulseOf(h.cmd.Process.Pid), time.NewTicker(background.PulseEvery)
		defer look.Stop()
		for {
			select {
			case <-done:
				return
			case <-look.C:
				if pulse.Hangs() {
					h.end()
				}
			}
		}
	})
	return nil
}
