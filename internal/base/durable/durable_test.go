package durable

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path, draft := filepath.Join(dir, "a"), filepath.Join(dir, "a.new")
	for _, text := range []string{"one", "two, and longer", ""} {
		if err := Replace(path, draft, text, 0o600); err != nil {
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
	if err := Replace(filepath.Join(dir, "a"), draft, "text", 0o600); err == nil {
		t.Error("the link was followed")
	}
	if got, _ := os.ReadFile(other); string(got) != "kept" {
		t.Errorf("the other file has %q", got)
	}
}
