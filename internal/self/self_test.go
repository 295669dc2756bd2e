package self

import (
	"context"
	"os"
	"path/filepath"
	"strings"
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

// Root runs no weird that another user has put beside weir, and follows no link of that user to one.
func TestAnothersWeird(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files to another user")
	}
	const other = 65534
	dir := t.TempDir()
	weird, real := filepath.Join(dir, daemonName), filepath.Join(dir, "real")
	file := func(path string, owner int) {
		t.Helper()
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	mode := func(to os.FileMode) {
		t.Helper()
		if err := os.Chmod(weird, to); err != nil {
			t.Fatal(err)
		}
	}
	link := func(owner int) {
		t.Helper()
		if err := os.Symlink(real, weird); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(weird, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		make func()
		want string
	}{
		{"none", func() {}, "it is not beside weir"},
		{"its own", func() { file(weird, 0) }, ""},
		{"no program", func() { file(weird, 0); mode(0o644) }, "is not a program that this user may run"},
		{"a directory", func() {
			if err := os.Mkdir(weird, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "is not a program that this user may run"},
		{"everybody's", func() { file(weird, 0); mode(0o777) }, "every user may write to "},
		{"another group's", func() {
			file(weird, 0)
			mode(0o775)
			if err := os.Lchown(weird, 0, other); err != nil {
				t.Fatal(err)
			}
		}, "users of another group than weir's may write to "},
		{"another's", func() { file(weird, other) }, "belongs to another user"},
		{"a link to it", func() { file(real, 0); link(0) }, ""},
		{"a link to another's", func() { file(real, other); link(0) }, "belongs to another user"},
		{"another's link", func() { file(real, 0); link(other) }, "belongs to another user"},
	} {
		for _, path := range []string{weird, real} {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		c.make()
		got, err := find([]string{dir}, notBeside)
		if c.want == "" && (err != nil || got != weird) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

// A pacer without weird learns that there is one by now, and not that a broken one is still there.
func TestChanged(t *testing.T) {
	program := filepath.Join(t.TempDir(), daemonName)
	put := func() {
		t.Helper()
		if err := os.WriteFile(program+".new", nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(program+".new", program); err != nil {
			t.Fatal(err)
		}
	}
	search := func() (string, error) { return find([]string{filepath.Dir(program)}, notBeside) }
	first := changed(search)
	if first() {
		t.Error("one that is not there has changed")
	}
	put()
	second := changed(search)
	if !first() || second() {
		t.Errorf("it came: %v; the same changed: %v", first(), second())
	}
	if put(); !second() {
		t.Error("another one is the same")
	}
}
