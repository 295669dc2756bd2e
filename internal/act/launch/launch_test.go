package launch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for name, mode := range map[string]os.FileMode{"good": 0o755, "plain": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]int{
		"good": 0, filepath.Join(dir, "good"): 0,
		"nothing": 127, filepath.Join(dir, "nothing"): 127, "": 127,
		"plain": 126, filepath.Join(dir, "plain"): 126, dir: 126,
	} {
		err := Find(command)
		var start *StartError
		if got := 0; errors.As(err, &start) {
			got = start.Status
			if got != want {
				t.Errorf("Find(%q): %v, status %d; want %d", command, err, got, want)
			}
		} else if err != nil || want != 0 {
			t.Errorf("Find(%q) = %v, want status %d", command, err, want)
		}
	}
}

func TestStatus(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143, "kill -KILL $$": 137} {
		cmd := exec.Command("sh", "-c", script)
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := status(cmd.ProcessState); got != want {
			t.Errorf("%s: status %d, want %d", script, got, want)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, good := range []string{"", "web", "a.b_c:d-1", strings.Repeat("x", 200)} {
		if err := CheckName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"a/b", "a b", "ü", "a\n", "..\x00", "@", strings.Repeat("x", 201)} {
		if err := CheckName(bad); err == nil {
			t.Errorf("CheckName(%q) = nil", bad)
		}
	}
}

func TestNames(t *testing.T) {
	if got := name(Options{Name: "web"}); got != "weir-web" {
		t.Errorf("name = %q", got)
	}
	a, b := name(Options{}), name(Options{})
	if a == b || !strings.HasPrefix(a, Prefix) || CheckName(strings.TrimPrefix(a, Prefix)) != nil {
		t.Errorf("made-up names %q and %q", a, b)
	}
}

func TestTheKeeperEndsWithItsPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		Keep(r)
		close(ended)
	}()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
}
