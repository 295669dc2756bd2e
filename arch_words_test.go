package weir_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unplain are words that made readers stop, by what to write instead. Each is exact: there is no
// sentence that needs it.
var unplain = map[string]string{
	`of weir's`:                     `write "weir's pacer", not "a pacer of weir's"`,
	`what is its`:                   `name the thing: "its files", "its limits"`,
	`as a rule`:                     `"usually", or leave it out`,
	`so that it is`:                 "who does what",
	`whoever(?:'s| needs| asks)`:    "the processes that",
	`what ends then`:                "a process that exits",
	`(?:has|have) not paid`:         "is never paused",
	`(?:take|takes|took) back`:      "undo",
	`[Kk]ept limits`:                "saved limits",
	`(?:failed|unable) to`:          "what failed, and its cause",
	`(?:is|are) there twice`:        "is given twice",
	`(?:are the most|is the least)`: "at most, at least",
	`knows no disks`:                "cannot tell disks apart",
	`[Ll]ooked at every`:            "wakes every",
	`HALF IN|99 % IN`:               "p50, p99",
	`end that use`:                  "stop that",
	`escaping writes`:               "writes to files of other groups",
	`[Pp]lease`:                     "the sentence without it",
}

var unplainWords = func() map[*regexp.Regexp]string {
	all := map[*regexp.Regexp]string{}
	for words, instead := range unplain {
		all[regexp.MustCompile(`\b(?:`+words+`)\b`)] = instead
	}
	return all
}()

// notPlain says which words of a text to replace, and by what; nil: none.
func notPlain(text string) (all []string) {
	text = strings.Join(strings.Fields(text), " ") // a line may end between two words
	for words, instead := range unplainWords {
		if is := words.FindString(text); is != "" {
			all = append(all, strconv.Quote(is)+": write "+instead)
		}
	}
	return all
}

// Messages and help say things as people do.
func TestMessagesArePlain(t *testing.T) {
	seen := 0
	for _, s := range sources(t) {
		if !s.isProgram() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if f, is := n.(*ast.Field); is && f.Tag != nil {
				return false
			}
			if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING {
				seen++
				for _, what := range notPlain(text.Value) {
					t.Errorf("%s: %s", s.at(n), what)
				}
			}
			return true
		})
	}
	if seen < 5000 {
		t.Errorf("only %d texts", seen)
	}
}

// So do the pages, without RESULTS.md: it quotes what was found.
func TestPagesArePlain(t *testing.T) {
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/guide/*.md", "docs/man/*.1"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no pages: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if file == "docs/RESULTS.md" {
				continue
			}
			for _, what := range notPlain(string(text)) {
				t.Errorf("%s: %s", file, what)
			}
		}
	}
}

// So do the comments of packages, and all of the library's.
func TestPackagesArePlain(t *testing.T) {
	for _, s := range sources(t) {
		groups := s.file.Comments
		if s.dir() != "." || !s.isProgram() {
			groups = []*ast.CommentGroup{s.file.Doc}
		}
		for _, g := range groups {
			for _, what := range notPlain(g.Text()) {
				t.Errorf("%s: %s", s.at(g), what)
			}
		}
	}
}

// What is not plain is found, also over the end of a line, and nothing is that only looks like it.
func TestWhatIsNotPlain(t *testing.T) {
	for text, want := range map[string]int{
		"a process of\nweir's": 1, "weir failed to read it": 1, "weir takes back the kept limits": 2, "key is there twice": 1,
		"the group has a rule": 0, "weir keeps limits": 0, "a pair of weirs": 0, "set it back": 0, "the page is pleasant": 0,
	} {
		if got := notPlain(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}
