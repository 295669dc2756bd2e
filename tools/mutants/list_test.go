package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A mutant whose text is not in its file, or is there twice, puts in no fault.
func TestMutantsHaveTheirText(t *testing.T) {
	for _, m := range slices.Concat(mutants, verbMutants, foundMutants, agentMutants, nriMutants) {
		text, err := os.ReadFile(filepath.Join("..", "..", m.file))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if n := strings.Count(string(text), m.was); n != 1 {
			t.Errorf("%s: %s has %q %d times", m.name, m.file, m.was, n)
		}
	}
}
