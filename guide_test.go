package weir_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuideProgram builds the program of the guide. What it does is an example, which runs.
func TestGuideProgram(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/guide/go.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n```\n(package main\n.*?\n)```\n").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 1 {
		t.Fatalf("%d programs", len(blocks))
	}
	program := blocks[0][1]
	from, to := strings.Index(program, "// A plan is"), strings.Index(program, "func main()")
	if from < 0 || to < from || !strings.Contains(string(examples), program[from:to]) {
		t.Errorf("example_test.go has not the guide's\n%s", program)
	}
	dir := t.TempDir()
	source, built := filepath.Join(dir, "main.go"), filepath.Join(dir, "paas")
	if err := os.WriteFile(source, []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", built, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// weir can start its helpers as this program: it goes no further than the first call.
	out, err := exec.Command(built, "__pacer", "x").CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 2 || !strings.Contains(string(out), "too many arguments") {
		t.Errorf("as a helper: %v\n%s", err, out)
	}
}
