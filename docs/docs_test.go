package docs_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the repository, from here.
const root = ".."

// pages are the documents, by their path in the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guide/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no documents: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(text)
		}
	}
	return all
}

var (
	fence   = regexp.MustCompile("(?s)\n```.*?\n```")
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	odd     = regexp.MustCompile(`[^\pL\pN _-]`)
)

// anchors are the places in a page that a link can name, as GitHub spells them.
func anchors(text string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		all = append(all, strings.ReplaceAll(odd.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	all, links := pages(t), 0
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			links++
			to := name
			if strings.Contains(m[1], "://") {
				t.Errorf("%s: %s: a link out of the repository, which nothing checks", name, m[1])
				continue
			}
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(name), m[1])
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
			} else if m[2] != "" && !slices.Contains(anchors(all[to]), m[2]) {
				t.Errorf("%s: %s has no part %q, only %q", name, to, m[2], anchors(all[to]))
			}
		}
	}
	if links < 20 {
		t.Errorf("only %d links", links)
	}
}

// Each page of the guide can be found from its first one.
func TestGuideListsItsPages(t *testing.T) {
	all := pages(t)
	for name := range all {
		if page, ok := strings.CutPrefix(name, "docs/guide/"); ok && page != "README.md" && !strings.Contains(all["docs/guide/README.md"], "("+page+")") {
			t.Errorf("docs/guide/README.md does not list %s", page)
		}
	}
}

func TestREADMEIsShort(t *testing.T) {
	if lines := strings.Count(pages(t)["README.md"], "\n"); lines > 100 {
		t.Errorf("README.md has %d lines; 100 are enough", lines)
	}
}

var (
	block   = regexp.MustCompile("(?sm)^```\n(.*?)^```")
	inline  = regexp.MustCompile("`(weird? [^`\n]*)`")
	comment = regexp.MustCompile(`\s{2,}#.*`)
	number  = strings.NewReplacer("RATE", "1MB/s", "SIZE", "1GiB", "TIME", "1s")
)

// commandsOf are the commands of weir and weird in a page: lines of its blocks, and what is quoted.
func commandsOf(text string) (all []string) {
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(m[1]) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "# ")
			for _, command := range strings.Split(comment.ReplaceAllString(line, ""), " && ") {
				if strings.HasPrefix(command, "weir ") || strings.HasPrefix(command, "weird ") {
					all = append(all, command)
				}
			}
		}
	}
	for _, m := range inline.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Each command in the documents has verbs and flags that there are, and values that they
// take: weir parses all of it, and prints the verb's help.
func TestCommandsExist(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "../cmd/weir", "../cmd/weird").CombinedOutput(); err != nil {
		t.Fatalf("build weir and weird: %v\n%s", err, out)
	}
	ran := 0
	for name, text := range pages(t) {
		if name == "CHANGELOG.md" || name == "docs/RESULTS.md" {
			continue // they quote mistakes, and what there was
		}
		for _, command := range commandsOf(text) {
			called, rest, _ := strings.Cut(number.Replace(command), " ")
			words := strings.Fields(rest)
			if last := len(words) - 1; last > 0 && words[last] == "…" && !strings.HasPrefix(words[last-1], "-") {
				words = words[:last]
			}
			if words[0] == "--root" || strings.HasPrefix(words[0], "__") || words[0] == "help" {
				continue
			}
			ran++
			verbs := slices.Clone(words[:1])
			if (words[0] == "volume" || words[0] == "quota" || words[0] == "completion") && len(words) > 1 {
				verbs = slices.Clone(words[:2])
			}
			program := called + " "
			switch { // what weird has
			case words[0] == "top", words[0] == "history":
				program = "weird "
			case words[0] == "agent" && called == "weir":
				program, verbs = "weird ", slices.Clone(words[1:min(2, len(words))])
			}
			end := slices.Index(words, "--")
			if end < 0 {
				end = len(words)
			}
			words = slices.Insert(words, end, "--help")
			out, err := exec.Command(filepath.Join(dir, called), words...).CombinedOutput()
			if err != nil || !strings.HasPrefix(strings.Join(verbs, " "), "-") && !strings.Contains(string(out), "\nUsage:\n  "+program+strings.Join(verbs, " ")) {
				first, _, _ := bytes.Cut(out, []byte("\n"))
				t.Errorf("%s: %s: %v: %s", name, command, err, first)
			}
		}
	}
	if ran < 80 {
		t.Errorf("only %d commands", ran)
	}
}

// A make target that is named is there.
func TestMakeTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z-]*)")
	for name, text := range pages(t) {
		for _, m := range targets.FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
				t.Errorf("%s: make %s: no such target", name, m[1])
			}
		}
	}
}
