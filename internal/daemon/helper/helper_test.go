package helper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// role has this test's program be a helper, or another program in its place; asks has it be a process
// that asks one.
const (
	role = "WEIR_TEST_HELPER"
	asks = "WEIR_TEST_ASKS"
	own  = "1.2"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asks) != "" && len(os.Args) == 1:
		askForEver()
	case os.Getenv(role) == "":
		os.Exit(m.Run())
	}
	if err := be(os.Getenv(role)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// be is what stands in a helper's place.
func be(what string) error {
	switch what {
	case "sleeps":
		time.Sleep(time.Hour)
	case "stops":
		return unix.Kill(os.Getpid(), unix.SIGSTOP)
	case "script that sleeps": // and keeps the streams when the script is killed
		return unix.Exec("/bin/sh", []string{"sh", "-c", "sleep 1000; true"}, os.Environ())
	case "another program":
		fmt.Println("hello")
		time.Sleep(time.Hour)
	case "another JSON":
		fmt.Println("{}")
		time.Sleep(time.Hour)
	case "nothing":
		return nil
	case "an error":
		return errors.New("weird: unknown command\x1b[2J\nand more")
	case "a panic":
		panic("oh")
	case "another version":
		return Serve("1.3", os.Stdin, os.Stdout, answerTo)
	}
	return Serve(own, os.Stdin, os.Stdout, answerTo)
}

type sample struct {
	Text  string
	Parts []*string
	Named map[string]any
	By    map[blkdev.Number]string
	Raw   []byte
}

func answerTo(name string, with []byte) (any, error) {
	switch name {
	case "echo":
		var s sample
		err := Unpack(with, &s)
		return s, err
	case "refuse":
		return nil, &fault.Unsupported{Feature: "this", Reason: "no"}
	case "pid":
		return os.Getpid(), nil
	case "compute":
		for n := 0; ; n++ {
			runtime.KeepAlive(n)
		}
	case "end":
		os.Exit(4)
	case "garbage":
		fmt.Println("}")
		time.Sleep(time.Hour)
	case "much":
		return strings.Repeat("x", 1<<20), nil
	}
	return nil, Unknown(name)
}

func begin(t *testing.T, what string) *Helper {
	t.Helper()
	t.Setenv(role, what)
	h, err := Of("weird", own, nil).Start("__test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.Close()
		for deadline := time.Now().Add(30 * time.Second); living(t, h.cmd.Process.Pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("something is left of the helper")
			}
		}
	})
	return h
}

// living reports whether a process of a group lives. (One that has ended may wait for process 1.)
func living(t *testing.T, group int) bool {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, file := range all {
		stat, _ := os.ReadFile(file) // some end meanwhile
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[0] != "Z" && f[2] == strconv.Itoa(group) { // proc_pid_stat(5): state, ppid, pgrp
			return true
		}
	}
	return false
}

// What is asked and answered comes as it was, to the byte.
func TestAsk(t *testing.T) {
	h := begin(t, "answers")
	odd, marked := "/data/\xff\n<é>", mark+"ff"
	for _, want := range []sample{
		{},
		{Text: "plain � \ufffd"},
		{Text: odd, Parts: []*string{&odd, nil, &marked}, Named: map[string]any{odd: marked, "n": 1.0, "l": []any{odd, nil}}, By: map[blkdev.Number]string{{Major: 8}: odd}, Raw: []byte{0xff, 0}},
	} {
		var got sample
		if err := h.Ask(t.Context(), "echo", want, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	if odd != "/data/\xff\n<é>" {
		t.Errorf("what was asked with is %q now", odd)
	}
	err := h.Ask(t.Context(), "refuse", nil, nil)
	if err == nil || err.Error() != "this: no" || fault.ClassOf(err) != fault.NotPossible {
		t.Error(err)
	}
	if err := h.Ask(t.Context(), "else", nil, nil); err == nil || !strings.Contains(err.Error(), `"else"`) {
		t.Error(err)
	}
	var number int
	if err := h.Ask(t.Context(), "echo", sample{}, &number); !fault.IsUnsupported(err) {
		t.Errorf("an answer of another kind: %v", err)
	}
}

// Whatever stands in a helper's place, there is one line that says so, soon, and nothing is left.
func TestNoHelper(t *testing.T) {
	for _, c := range []struct{ what, asks, want string }{
		{"sleeps", "", "it does not answer"},
		{"stops", "", "it does not answer"},
		{"script that sleeps", "", "it does not answer"},
		{"another program", "", "it is another program"},
		{"another JSON", "", "it is another program"},
		{"nothing", "", "it ended without an answer"},
		{"an error", "", `it ended without an answer (exit status 3): weird: unknown command\x1b[2J`},
		{"a panic", "", "it ended without an answer (exit status 2): panic: oh"},
		{"another version", "", `it is of version "1.3", and this weir of "1.2"`},
		{"answers", "end", "it ended without an answer (exit status 4)"},
		{"answers", "garbage", "it is another program"},
		{"answers", "much", "its answer has more than 65536 bytes"},
	} {
		t.Run(c.what+" "+c.asks, func(t *testing.T) {
			h := begin(t, c.what)
			h.most = 64 << 10
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := h.Ask(ctx, c.asks, nil, nil)
			want := "run weird: " + c.want + "; install weir and weird of one build again"
			if err == nil || err.Error() != want || fault.ClassOf(err) != fault.NotPossible {
				t.Errorf("%v, want %s", err, want)
			}
			if again := h.Ask(t.Context(), "pid", nil, nil); again == nil || again.Error() != want {
				t.Errorf("asked again: %v", again)
			}
		})
	}
}

// A helper that is at work is not taken for one that hangs, and ends with the context.
func TestAskEndsWithTheContext(t *testing.T) {
	h := begin(t, "answers")
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if err := h.Ask(ctx, "compute", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// Close ends a helper that hangs.
func TestCloseOfOneThatHangs(t *testing.T) {
	h := begin(t, "answers")
	if err := h.Ask(t.Context(), "pid", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_ = h.Close()
}

func askForEver() {
	h, err := Of("weird", own, nil).Start("__test")
	var pid int
	if err == nil {
		err = h.Ask(context.Background(), "pid", nil, &pid)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(pid)
	_ = h.Ask(context.Background(), "compute", nil, nil)
}

// If the process that asks is killed, its helper ends, whatever it is at.
func TestTheAskerIsKilled(t *testing.T) {
	t.Setenv(role, "answers")
	t.Setenv(asks, "1")
	cmd := exec.Command("/proc/self/exe")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var line [32]byte
	n, err := out.Read(line[:])
	pid, bad := strconv.Atoi(string(bytes.TrimSpace(line[:n])))
	if err != nil || bad != nil {
		t.Fatalf("%q, %v", line[:n], err)
	}
	time.Sleep(50 * time.Millisecond) // for the next question to be under way; else the test is easier
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); living(t, pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the helper goes on")
		}
	}
}

// A program that does not run weir's roles has no helpers.
func TestNoStarter(t *testing.T) {
	if _, err := (Starter{}).Start("__test"); !fault.IsUnsupported(err) {
		t.Error(err)
	}
	missing := errors.New("it is not there")
	if _, err := Of("weird", own, func() (string, error) { return "", missing }).Start("__test"); !errors.Is(err, missing) {
		t.Error(err)
	}
	text := filepath.Join(t.TempDir(), "weird")
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Of("weird", own, func() (string, error) { return text, nil }).Start("__test"); err == nil ||
		err.Error() != "run weird: "+text+": exec format error; install weir and weird of one build again" {
		t.Error(err)
	}
}
