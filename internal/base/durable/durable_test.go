package durable

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path, draft := filepath.Join(dir, "a"), filepath.Join(dir, "a.new")
	for i, text := range []string{"one", "two, and longer", "", "three", ""} {
		write := Replace
		if i > 2 {
			write = Swap
		}
		if err := write(path, draft, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("the file has %q, %v; want %q", got, err, text)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}

// A draft that somebody else has put there as a link is not followed.
func TestADraftIsNoLink(t *testing.T) {
	dir := t.TempDir()
	draft, other := filepath.Join(dir, "a.new"), filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, draft); err != nil {
		t.Fatal(err)
	}
	for _, write := range []func(path, draft, text string, mode os.FileMode) error{Replace, Swap} {
		if err := write(filepath.Join(dir, "a"), draft, "text", 0o600); err == nil {
			t.Error("the link was followed")
		}
	}
	if got, _ := os.ReadFile(other); string(got) != "kept" {
		t.Errorf("the other file has %q", got)
	}
}

func TestIsVoid(t *testing.T) {
	for text, want := range map[string]bool{"": true, "\x00\x00": true, "\n": false, "\x00{}": false} {
		if IsVoid([]byte(text)) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
