package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	rulesDir = "../../internal/look/why"
	pageFile = "../../docs/guide/findings.md"
)

func TestPageIsUpToDate(t *testing.T) {
	findings, err := read(rulesDir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, page(findings)) {
		t.Errorf("%s is not what the rules of weir why say: run make findings", pageFile)
	}
}

// weir why puts "fix" or "or" before each way out.
func TestFixesStandAlone(t *testing.T) {
	findings, err := read(rulesDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		for _, one := range f.fixes {
			if strings.HasPrefix(one.text, "or ") {
				t.Errorf("%s: %q reads \"or or\"", f.code, one.text)
			}
		}
	}
}

// Each code that a rule names is found, by another way of reading.
func TestEveryCodeIsRead(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(rulesDir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	findings, err := read(rulesDir)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?:Code: |\.Code(?:, [a-z.]+)* = )"([a-z0-9-]+)"`)
	codes := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			codes++
			if !slices.ContainsFunc(findings, func(f finding) bool { return f.code == m[1] }) {
				t.Errorf("%s: %s is not on the page", file, m[1])
			}
		}
	}
	if codes < len(findings) {
		t.Errorf("%d codes in the sources, and %d findings", codes, len(findings))
	}
}

// What the page says is made from each shape that a rule has.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	source := `package why

const where = "the root group"

var bugs = []bug{
	{text: "too much passes", fixed: [2]int{5, 18}},
	{text: "too little passes", fixed: [2]int{6, 11}, how: "half"},
}

func literal(f Facts) []Finding {
	return []Finding{{Code: "literal", Severity: Breaks, Text: "It goes to " + where + ".", Fixes: []Fix{{Text: "limit it", Lines: []string{"weir set " + f.Target}}, f.boot()}}}
}

func (f Facts) boot() Fix { return Fix{Text: "boot"} }

func changed(f Facts) []Finding {
	one := Finding{Code: "changed", Severity: Note, Text: fmt.Sprintf("%s has %d %%.", f.Target, 3)}
	if f.Bad {
		one.Severity, one.Text = Hurts, "It is bad."
	}
	one.Fixes = append(one.Fixes, Fix{Text: "do", Lines: f.again()})
	return []Finding{one}
}

func (f Facts) again() (lines []string) {
	lines = append(lines, "weir set "+f.Target)
	return lines
}

func handed(one *Finding) {
	if one.Early {
		one.Code, one.Severity, one.Text = "early", Note, "Early."
		return
	}
	one.Code, one.Severity, one.Text = "late", Breaks, "Late"
	one.Text += " indeed."
}

func table(b bug) Finding {
	found := Finding{Code: "table", Severity: Hurts}
	found.Text = fmt.Sprintf("Before %d.%d %s (%s).", b.fixed[0], b.fixed[1], b.text, b.how)
	return found
}

func within(f Facts) (all []Finding) {
	add := func(option, text string) {
		all = append(all, Finding{Code: "within", Severity: Note, Text: text, Fixes: []Fix{{Text: "set " + option}}})
	}
	add("A", "No A.")
	add("B", "No B.")
	return all
}
`
	if err := os.WriteFile(filepath.Join(dir, "rules.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []finding{
		{"changed", []string{"note", "hurts"}, []string{"TARGET has 3 %.", "It is bad."}, []fix{{"do", []string{"weir set TARGET"}}}},
		{"early", []string{"note"}, []string{"Early."}, nil},
		{"late", []string{"breaks"}, []string{"Late indeed."}, nil},
		{"literal", []string{"breaks"}, []string{"It goes to the root group."}, []fix{{"limit it", []string{"weir set TARGET"}}, {"boot", nil}}},
		{"table", []string{"hurts"}, []string{"Before 6.11 too little passes (half)."}, nil},
		{"within", []string{"note"}, []string{"No A.", "No B."}, []fix{{"set A", nil}, {"set B", nil}}},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, w := range want {
		g := got[i]
		same := g.code == w.code && slices.Equal(g.severities, w.severities) && slices.Equal(g.texts, w.texts) &&
			slices.EqualFunc(g.fixes, w.fixes, func(a, b fix) bool { return a.text == b.text && slices.Equal(a.lines, b.lines) })
		if !same {
			t.Errorf("got %+v, want %+v", g, w)
		}
	}
}

// A rule that cannot be read is an error, and not a hole in the page.
func TestReadRefuses(t *testing.T) {
	for name, source := range map[string]string{
		"no findings": "package why",
		"no text":     "package why\n\nfunc f() Finding { return Finding{Code: \"x\", Severity: Note} }",
		"no severity": "package why\n\nfunc f() Finding { return Finding{Code: \"x\", Text: \"X.\"} }",
		"no Go":       "package",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "rules.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(dir); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
