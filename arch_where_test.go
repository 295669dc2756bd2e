package weir_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFolders holds the table of folders in ARCHITECTURE.md against the packages: what it names in a
// folder's row is there, and each package right below that folder is named.
func TestFolders(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "## Folders\n")
	table, _, _ := strings.Cut(after, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| `(cmd|internal[^`]*)` \\| (.*) \\|$").FindAllStringSubmatch(table, -1)
	if len(rows) < 8 {
		t.Fatalf("the table has %d folders", len(rows))
	}
	folders := map[string]bool{}
	for _, row := range rows {
		folders[row[1]] = true
	}
	for _, row := range rows {
		named := map[string]bool{}
		for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[2], -1) {
			named[m[1]] = true
			if found, err := filepath.Glob(filepath.Join(row[1], m[1], "*.go")); err != nil || len(found) == 0 {
				t.Errorf("%s has no package %s: %v", row[1], m[1], err)
			}
		}
		sources, err := filepath.Glob(filepath.Join(row[1], "*", "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range sources {
			dir := filepath.Dir(path)
			if name := filepath.Base(dir); !named[name] && !folders[dir] && !strings.HasSuffix(name, "test") {
				t.Errorf("%s: the row of %s does not name it", dir, row[1])
				named[name] = true
			}
		}
	}
}

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
