package weir_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhereToLook holds the table of ARCHITECTURE.md that says where what is against the files:
// each is there, and has the name that the table gives before it ("NAME in FILE").
func TestWhereToLook(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "## Where to look\n")
	table, _, _ := strings.Cut(after, "\n## ")
	files := regexp.MustCompile("`(internal/[^`]*)`").FindAllStringSubmatch(table, -1)
	if len(files) < 10 {
		t.Fatalf("the table names %d files", len(files))
	}
	for _, m := range files {
		if found, err := filepath.Glob(m[1]); err != nil || len(found) == 0 {
			t.Errorf("%s is not there: %v", m[1], err)
		}
	}
	for _, m := range regexp.MustCompile("`(\\w+)` in `(internal/[^`]*\\.go)`").FindAllStringSubmatch(table, -1) {
		source, err := os.ReadFile(m[2])
		if err != nil {
			continue // it was said
		}
		if !regexp.MustCompile(`(?m)^(type|func)( \([^)]*\))? ` + m[1] + `\b`).Match(source) {
			t.Errorf("%s has no %s", m[2], m[1])
		}
	}
}
