package lab

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab/environ"
)

// Resets is how often this guest was reset.
func Resets(t testing.TB) int {
	t.Helper()
	n, may := resets()
	if !may {
		t.Fatal("lab.Resets: begin with lab.Need(t, lab.Resettable)")
	}
	return n
}

// resets is how often this guest was reset; may is false where none is.
func resets() (n int, may bool) {
	text, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return 0, false
	}
	for word := range strings.FieldsSeq(string(text)) {
		if count, is := strings.CutPrefix(word, environ.Resets); is {
			n, err := strconv.Atoi(count)
			return n, err == nil
		}
	}
	return 0, false
}

// Reset asks the lab to reset this guest at a random moment within a time. It returns at once: what
// the test does next is cut off. The guest boots again with its disks as they are then, and the test
// begins anew.
func Reset(t testing.TB, within time.Duration) {
	t.Helper()
	Resets(t)
	console, err := os.OpenFile("/dev/console", os.O_WRONLY, 0)
	if err == nil {
		_, err = console.WriteString("\n" + environ.ResetOrder + within.String() + "\n")
		err = errors.Join(err, console.Close())
	}
	if err != nil {
		t.Fatalf("ask for a reset: %v", err)
	}
}
