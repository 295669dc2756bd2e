package self

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/look/latency"
	"github.com/weir-io/weir/internal/look/load"
)

// A program's own arguments are no role.
func TestNoRole(t *testing.T) {
	for _, args := range [][]string{nil, {"run"}, {"--version"}, {"run", load.Arg}, {""}, {"__"}} {
		if is, err := Main(t.Context(), args, Streams{}, Heavy{}); is || err != nil {
			t.Errorf("%q is a role (%v)", args, err)
		}
	}
}

// Helpers that outlive their starter take no arguments.
func TestTooManyArguments(t *testing.T) {
	for _, name := range []string{launch.KeeperArg, launch.WitnessArg, launch.SweepArg, pacer.PacerArg, pacer.GuardArg} {
		is, err := Main(t.Context(), []string{name, "x"}, Streams{}, Heavy{})
		if !is || fault.ClassOf(err) != fault.WrongUse {
			t.Errorf("%s x: %v, %v", name, is, err)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{{load.Arg, "frob"}, {load.Arg}, {latency.WriterArg, "frob"}} {
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		is, err := Main(t.Context(), args, Streams{In: out, Out: in}, Heavy{})
		if !is || err == nil {
			t.Errorf("%q: %v, %v", args, is, err)
		}
		_, _ = in.Close(), out.Close()
	}
}

// A load counts what it does, for whoever reads its output.
func TestLoad(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	job := load.Job{Path: load.Buffered, File: filepath.Join(t.TempDir(), "f"), Block: 4096, Size: 1 << 20, For: 50 * time.Millisecond}
	ended := make(chan error, 1)
	go func() {
		_, err := Main(context.Background(), append([]string{load.Arg}, job.Args()...), Streams{Out: in}, Heavy{})
		_ = in.Close() // the reader sees the end
		ended <- err
	}()
	result, err := load.Decode(out, nil)
	if ended := <-ended; err != nil || ended != nil || result.BytesPerSec() <= 0 {
		t.Errorf("%+v: %v, %v", result, err, ended)
	}
}
