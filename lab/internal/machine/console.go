package machine

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// lastWords says what a guest that brought no results was doing: an error with
// the kernel's panic, or the tests that had begun and not ended.
func lastWords(console string) error {
	data, err := os.ReadFile(console)
	if err != nil {
		return err
	}
	return explain(string(data))
}

func explain(console string) error {
	var panicked string
	var open []string
	for line := range strings.Lines(console) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "Kernel panic") && panicked == "" {
			panicked = line
		}
		if name, ok := strings.CutPrefix(line, "=== RUN"); ok {
			open = append(open, strings.TrimSpace(name))
		}
		if _, rest, ok := strings.Cut(line, "--- "); ok {
			open = remove(open, rest)
		}
	}
	switch {
	case panicked != "":
		return errors.New(panicked)
	case len(open) > 0:
		return fmt.Errorf("it was in %s", strings.Join(open, ", "))
	}
	return errors.New("it was in no test: its console tells how far it came")
}

// remove takes the test of "PASS: TestA (0.00s)" off the list.
func remove(open []string, ended string) []string {
	_, rest, _ := strings.Cut(ended, ": ")
	name, _, _ := strings.Cut(rest, " ")
	var left []string
	for _, o := range open {
		if o != name {
			left = append(left, o)
		}
	}
	return left
}
