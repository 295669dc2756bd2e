package second

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/heavy"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/self"
)

// variable has a program do one request of its standard input.
const variable = "WEIR_LAB_SECOND"

// An Answer is what came of a request.
type Answer struct {
	Document json.RawMessage
	Exit     int    // the exit code that its error stands for
	Error    string // empty: there is none
}

// Main makes the program this front end if Ask has started it, or one of weir's helpers if this
// front end has. Then it does not return.
func Main() {
	streams := self.Streams{In: os.Stdin, Out: os.Stdout, Say: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	is, err := self.Main(context.Background(), os.Args[1:], streams, heavy.Roles(""))
	switch {
	case is:
	case os.Getenv(variable) == "":
		return
	default:
		err = serve(context.Background(), os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(fault.ExitCode(err))
}

// serve does one request on this host.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var r Request
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return err
	}
	h, err := host.Open(host.Options{Root: "/", Program: os.Executable, Helpers: helper.Of("a helper", "", nil)})
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	if err := h.Sweep(); err != nil {
		return err
	}
	document, err := Do(ctx, h, r)
	a := Answer{Exit: fault.ExitCode(err)}
	if err != nil {
		a.Error = err.Error()
	} else if a.Document, err = json.Marshal(document); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(a)
}

// Ask has another process, of this program, do a request on this host.
func Ask(ctx context.Context, r Request) (a Answer, err error) {
	asked, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), variable+"=1")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(asked), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(out, &a)
}
