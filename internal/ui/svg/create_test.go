package svg

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Whoever owns the directory does not choose where a picture goes.
func TestPicturesFollowNoLink(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("roots"), []byte("kept"), 0o600), os.Symlink("roots", at("link")), os.Symlink("none", at("dangling")), unix.Mkfifo(at("fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	draw := func(w io.Writer) error { _, err := io.WriteString(w, "<svg/>"); return err }
	for name, want := range map[string]string{"link": "it is a link", "dangling": "it is a link", "fifo": "a pipe that nobody reads"} {
		if err := write(at(name), draw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if err := Check("--svg", at("link")); err == nil || !strings.Contains(err.Error(), "it is a link") {
		t.Errorf("before the measurement: %v", err)
	}
	if text, err := os.ReadFile(at("roots")); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Lstat(at("none")); err == nil {
		t.Error("a file was made beyond a link")
	}
	for range 2 { // a new one, and one that is replaced
		if err := errors.Join(Check("--svg", at("new")), write(at("new"), draw)); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(at("new")); err != nil || string(text) != "<svg/>" {
			t.Errorf("%q, %v", text, err)
		}
	}
	if err := errors.Join(Check("--svg", "/dev/null"), write("/dev/null", draw)); err != nil {
		t.Error(err)
	}
}
