// Package mantest makes manual pages from commands, for tests that hold docs/man against them.
package mantest

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/weir-io/weir/docs"
	"github.com/weir-io/weir/internal/ui/cli"
)

var writeTo = flag.String("man", "", "write the manual pages to `DIR`, as tools/man does")

// Check makes a page for a program and each of its verbs, and compares them with docs/man. With
// the flag -man it replaces the program's pages there instead.
func Check(t *testing.T, root *cobra.Command) {
	t.Helper()
	dir := t.TempDir()
	write(t, root, dir)
	if *writeTo != "" {
		replace(t, root.Name(), dir)
		return
	}
	made := pagesOf(t, os.DirFS(dir), root.Name())
	man, err := fs.Sub(docs.Files, "man")
	if err != nil {
		t.Fatal(err)
	}
	if kept := pagesOf(t, man, root.Name()); len(made) != len(kept) {
		t.Errorf("docs/man has %d pages of %s, and there are %d; run make man", len(kept), root.Name(), len(made))
	}
	for _, name := range made {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := fs.ReadFile(man, name)
		if err != nil || string(got) != string(want) {
			t.Errorf("docs/man/%s is not what the verbs say (%v); run make man", name, err)
		}
	}
}

// columns are those of a terminal that help must fit.
const columns = 80

// Fits holds the help of a program and of each of its verbs against a terminal of 80 columns, examples too,
// which are not wrapped.
func Fits(t *testing.T, cmd *cobra.Command) {
	t.Helper()
	for line := range strings.Lines(cli.Help(cmd, columns)) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
			t.Errorf("%s --help has a line of %d columns: %s", cmd.CommandPath(), n, line)
		}
	}
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			Fits(t, c)
		}
	}
}

// pagesOf lists the pages of one program.
func pagesOf(t *testing.T, dir fs.FS, program string) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{program + ".1", program + "-*.1"} {
		some, err := fs.Glob(dir, pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

// date is where a page's title line has the day it was made: pages that say the same
// are the same.
var date = regexp.MustCompile(`(?m)^(\.TH "[^"]*" "1") "[^"]*"`)

// cobra prints what a flag is without being given. Of a flag that has nothing then, the page has the name of its value.
var (
	off   = regexp.MustCompile(`\[=false\]`)
	empty = regexp.MustCompile(`\\fP=(?:"")?(\n\t[^\n]*?\\fB([^\\]+)\\fR)`)
)

func write(t *testing.T, root *cobra.Command, dir string) {
	t.Helper()
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &time.Time{}, Source: "weir", Manual: "weir manual"}, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range pagesOf(t, os.DirFS(dir), root.Name()) {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = date.ReplaceAll(text, []byte(`$1 ""`))
		text = empty.ReplaceAll(off.ReplaceAll(text, nil), []byte(`\fP=\fI$2\fP$1`))
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// replace leaves no page of a verb that is gone.
func replace(t *testing.T, program, from string) {
	t.Helper()
	for _, name := range pagesOf(t, os.DirFS(*writeTo), program) {
		if err := os.Remove(filepath.Join(*writeTo, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(*writeTo, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(*writeTo, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
