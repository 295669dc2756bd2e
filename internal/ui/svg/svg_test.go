package svg

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
)

// What cannot be written is refused before anything is measured.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		"": "", dir + "/new.svg": "",
		dir:               "--svg " + dir + ": it is a directory; write a file's name",
		dir + "/no/x.svg": "--svg " + dir + "/no/x.svg: " + dir + "/no is no directory; make it first",
	} {
		err := Check("--svg", path)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%q: %v, want %q", path, err, want)
		case strings.HasPrefix(want, "--svg") && fault.ClassOf(err) != fault.WrongUse:
			t.Errorf("%q: %v is no wrong use", path, err)
		}
	}
}

// A drawing that fails leaves the file as it was.
func TestWriteKeepsWhatWasThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.svg")
	if err := os.WriteFile(path, []byte("was"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := write(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if text, _ := os.ReadFile(path); !errors.Is(err, broken) || string(text) != "was" {
		t.Errorf("%v, %q", err, text)
	}
}
