package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	quoted   = regexp.MustCompile("`([^`]+)`")
	testRef  = regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]\w*(?:/\S+)?$`)
	aPackage = regexp.MustCompile(`^(?:(?:internal|cmd|lab|tools)/[\w/-]*\w|docs)$`)
)

// testsOf are the sources of the tests of each package, by its directory.
func testsOf(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		all[dir] += string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each test that the documents name is there. (The change log may name what there was.)
func TestNamedTestsExist(t *testing.T) {
	var names []string
	for _, text := range testsOf(t) {
		for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	for page, text := range pages(t) {
		for _, name := range testName.FindAllString(text, -1) {
			// One can be the beginning of several, as it is for go test -run.
			if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name) }) {
				t.Errorf("%s: no test %s", page, name)
			}
		}
	}
}

// Each row "`package`: `Test`, `Test/part`" of the tables names tests of that package. A
// row without a package is about the last one that was named above the table.
func TestNamedTestsAreWhereTheySay(t *testing.T) {
	sources, all := testsOf(t), pages(t)
	for _, page := range []string{"docs/RESULTS.md", "docs/security.md"} {
		var above []string
		rows := 0
		for line := range strings.Lines(all[page]) {
			in, open := above, false
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				switch word := m[1]; {
				case aPackage.MatchString(word):
					if !open {
						in = nil
					}
					in, open = append(slices.Clip(in), word), true
				case testRef.MatchString(word) && strings.HasPrefix(line, "|"):
					open = false
					rows++
					if len(in) == 0 {
						t.Errorf("%s: %s is in no package", page, word)
					}
					for _, dir := range in {
						hasTest(t, page, sources[dir], dir, word)
					}
				}
			}
			if !strings.HasPrefix(line, "|") {
				above = in
			}
		}
		if rows < 40 {
			t.Errorf("%s: only %d tests named", page, rows)
		}
	}
}

// hasTest looks for a test, or a part of one, in a package.
func hasTest(t *testing.T, page, source, dir, ref string) {
	t.Helper()
	name, part, _ := strings.Cut(ref, "/")
	if !regexp.MustCompile(`(?m)^func ` + name + `\(`).MatchString(source) {
		t.Errorf("%s: %s has no test %s", page, dir, name)
		return
	}
	if part == "" {
		return
	}
	scripts, err := filepath.Glob(filepath.Join(root, dir, "testdata", "*", part+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	// go test writes spaces as underscores.
	written := regexp.MustCompile(`["` + "`" + `]` + strings.ReplaceAll(regexp.QuoteMeta(part), "_", "[ _]") + `["` + "`" + `]`)
	if len(scripts) == 0 && !written.MatchString(source) {
		t.Errorf("%s: %s: %s has no part %s", page, dir, name, part)
	}
}
