package build

import (
	"cmp"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// testNames lists the tests of files in dir, by file and place, as a binary lists them. Fuzz
// targets and examples with an output run as tests and are listed too; benchmarks are not.
func testNames(dir string, files []string) ([]string, error) {
	var names []string
	var examples []*doc.Example
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name != "TestMain" && (isTest(f.Name.Name, "Test") || isTest(f.Name.Name, "Fuzz")) {
				names = append(names, f.Name.Name)
			}
		}
		examples = append(examples, doc.Examples(file)...)
	}
	slices.SortFunc(examples, func(a, b *doc.Example) int { return cmp.Compare(a.Order, b.Order) })
	for _, e := range examples {
		if e.Output != "" || e.EmptyOutput {
			names = append(names, "Example"+e.Name)
		}
	}
	return names, nil
}

// isTest is go test's rule: no lower-case letter follows the prefix.
func isTest(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	first, _ := utf8.DecodeRuneInString(rest)
	return ok && (rest == "" || !unicode.IsLower(first))
}

// selector tells which top-level tests a -run lets through, or may: what it cannot read it
// lets through, and go test says what is wrong with it.
func selector(run string) func(name string) bool {
	all := func(string) bool { return true }
	if run == "" {
		return all
	}
	var alternatives []*regexp.Regexp
	for _, a := range split(run, '|') {
		r, err := regexp.Compile(split(a, '/')[0])
		if err != nil {
			return all
		}
		alternatives = append(alternatives, r)
	}
	return func(name string) bool {
		return slices.ContainsFunc(alternatives, func(r *regexp.Regexp) bool { return r.MatchString(name) })
	}
}

// split cuts a regular expression at a separator that is in no brackets, as go test does.
func split(text string, at rune) []string {
	var parts []string
	square, round, from, escaped := 0, 0, 0, false
	for i, c := range text {
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '[':
			square++
		case c == ']':
			square = max(square-1, 0)
		case c == '(' && square == 0:
			round++
		case c == ')' && square == 0:
			round--
		case c == at && square == 0 && round == 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}
