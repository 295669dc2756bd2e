package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Bounds of what is easy to read. README.md of the first releases had sentences of 72 words and
// paragraphs of 239.
const (
	sentenceMost  = 25  // words
	paragraphMost = 100 // words
	screen        = 40  // lines that a reader sees before scrolling
)

var (
	blocks   = regexp.MustCompile("(?ms)^ *(?:```|~~~).*?^ *(?:```|~~~) *$")
	code     = regexp.MustCompile("`[^`\n]*`")
	linked   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	cells    = regexp.MustCompile(`[^\\]\|`)
	item     = regexp.MustCompile(`^(?:[-*]|\d+\.) +`)
	sentence = regexp.MustCompile(`[.!?]["')*]*(?: |$)`)
	letters  = regexp.MustCompile(`[\pL\pN]`)
)

// paragraphs are the parts of a page that are read in one go: paragraphs, items of lists and
// cells of tables. A quoted command is one word. The parts of a list of links (… · …) are parts too.
func paragraphs(text string) (all []string) {
	text = linked.ReplaceAllString(code.ReplaceAllString(blocks.ReplaceAllString(text, "\n\n"), "code"), "$1")
	begin := true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "|"):
			all = append(all, cells.Split(line[1:], -1)...)
			begin = true
			continue
		case line == "" || strings.HasPrefix(line, "#"):
			begin = true
			continue
		case item.MatchString(line):
			line, begin = item.ReplaceAllString(line, ""), true
		}
		if begin {
			all = append(all, "")
		}
		all[len(all)-1] += line + " "
		begin = false
	}
	var parts []string
	for _, p := range all {
		parts = append(parts, strings.Split(p, " · ")...)
	}
	return parts
}

func words(text string) (n int) {
	for word := range strings.FieldsSeq(text) {
		if letters.MatchString(word) {
			n++
		}
	}
	return n
}

// hard says which paragraphs and sentences of a page are too long to be read once.
func hard(text string) (all []string) {
	for _, p := range paragraphs(text) {
		if n := words(p); n > paragraphMost {
			all = append(all, fmt.Sprintf("a paragraph of %d words, at most %d are read in one go: %s", n, paragraphMost, p))
		}
		for len(p) > 0 {
			end := len(p)
			if at := sentence.FindStringIndex(p); at != nil {
				end = at[1]
			}
			if n := words(p[:end]); n > sentenceMost {
				all = append(all, fmt.Sprintf("a sentence of %d words, at most %d are read in one go: %s", n, sentenceMost, p[:end]))
			}
			p = p[end:]
		}
	}
	return all
}

// README.md and the guide can be read by somebody in trouble. (What weir why prints, which
// findings.md lists, is held to weir's own rules for messages.)
func TestPagesAreEasyToRead(t *testing.T) {
	seen := 0
	for name, text := range pages(t) {
		if name != "README.md" && filepath.Dir(name) != "docs/guide" || name == "docs/guide/findings.md" {
			continue
		}
		seen += len(paragraphs(text))
		for _, what := range hard(text) {
			t.Errorf("%s: %s", name, what)
		}
	}
	if seen < 500 {
		t.Errorf("only %d paragraphs", seen)
	}
}

// README.md of an early release was hard to read; so are these parts of it.
func TestWhatIsHardToRead(t *testing.T) {
	long := "It cannot stop a process within a system call: a single write of a megabyte passes whole, and is paid for after, so what ends then has not paid. "
	for text, want := range map[string]int{
		long:                               1,
		"Short. " + long + "Short again. ": 1,
		"| a | " + long + "| b |\n":        1,
		"- " + long + "\n- " + long:        2,
		"```\n" + long + "\n```\n":         0,
		"# " + long:                        0,
		strings.Repeat("Four words are short. ", 26):                             1,
		strings.Repeat("Four words are short.\n", 26):                            1,
		strings.Repeat("Four words are short.\n\n", 26):                          0,
		strings.Repeat("[one](a.md) · ", 200):                                    0,
		"It is `" + strings.Repeat("word ", 40) + "`. 25 words are not too long": 0,
		"Linux 6.18 counts 1.5 of " + strings.Repeat("word ", 25):                1,
	} {
		if got := hard(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}

// Who opens README.md sees the problem first, and how to try weir and its tests without
// scrolling.
func TestREADMEBeginsWithTheProblem(t *testing.T) {
	lines := strings.Split(pages(t)["README.md"], "\n")
	first := strings.Join(lines[:min(5, len(lines))], "\n")
	for _, what := range []string{"--device-write-bps", "IOWriteBandwidthMax=", "page cache"} {
		if !strings.Contains(first, what) {
			t.Errorf("README.md does not begin with the problem: no %s in its first lines", what)
		}
	}
	for _, command := range []string{"make demo", "make test"} {
		if at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, command) }); at < 0 || at >= screen {
			t.Errorf("README.md: %s is in line %d, want it in the first %d", command, at+1, screen)
		}
	}
}

// Each page says where its words are explained before its first section, because a reader can
// come from anywhere.
func TestGuideLeadsToTheGlossary(t *testing.T) {
	for name, text := range pages(t) {
		if filepath.Dir(name) != "docs/guide" {
			continue
		}
		if head, _, _ := strings.Cut(text, "\n## "); !strings.Contains(head, "(../glossary.md") {
			t.Errorf("%s does not lead to docs/glossary.md before its first section", name)
		}
	}
}
