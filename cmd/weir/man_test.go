package main

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/weir-io/weir/docs"
	"github.com/weir-io/weir/lab"
)

var manDir = flag.String("man", "", "write the manual pages to `DIR`, as tools/man does")

// TestManPages makes the manual pages from the verbs, and holds docs/man against them.
func TestManPages(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	writeManPages(t, dir)
	if *manDir != "" {
		replacePages(t, *manDir, dir)
		return
	}
	made, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := fs.Glob(docs.Files, "man/*.1")
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != len(kept) {
		t.Errorf("docs/man has %d pages, and there are %d; run make man", len(kept), len(made))
	}
	for _, path := range made {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := docs.Files.ReadFile("man/" + filepath.Base(path))
		if err != nil || string(got) != string(want) {
			t.Errorf("docs/man/%s is not what the verbs say (%v); run make man", filepath.Base(path), err)
		}
	}
}

// date is where a page's title line has the day it was made: pages that say the same
// are the same.
var date = regexp.MustCompile(`(?m)^(\.TH "[^"]*" "1") "[^"]*"`)

func writeManPages(t *testing.T, dir string) {
	t.Helper()
	root := newRoot(&app{})
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &time.Time{}, Source: "weir", Manual: "weir manual"}, dir); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, date.ReplaceAll(text, []byte(`$1 ""`)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// replacePages leaves no page of a verb that is gone.
func replacePages(t *testing.T, dir, from string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
