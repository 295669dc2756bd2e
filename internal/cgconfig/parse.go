package cgconfig

import (
	"fmt"
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
)

// A Section is a braced part of the file, such as "group web { … }".
type Section struct {
	Word     string // what it begins with: group, mount, perm, the name of a controller …
	Name     string // the second word of group and template; else empty
	Line     int
	Settings []Setting
	Sections []Section
}

// A Setting is "NAME = VALUE;".
type Setting struct {
	Name, Value string
	Line        int
}

// A SyntaxError says where the file cannot be read.
type SyntaxError struct {
	Line int
	Why  string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// depthMax bounds how deep sections nest; libcgroup's go to group, perm, task.
const depthMax = 8

// Parse reads a file. The error is a *SyntaxError.
func Parse(text string) ([]Section, error) {
	p := parser{rest: text, line: 1, begins: true}
	p.next()
	var all []Section
	for p.token != "" || p.quoted {
		s, err := p.section(0)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// A parser holds the next token: a word, one of { } = ; or "" at the end.
type parser struct {
	rest   string
	line   int // of the end of the token
	token  string
	quoted bool // the token is a word in quotation marks, and can be empty
	open   bool // it has no second one
	begins bool // rest is at the beginning of a line
}

// separators end a word that is not quoted.
const separators = " \t\r\n\v\f{}=;\"#"

// next reads a token. libcgroup knows comments at the beginning of a line, with # or *; here
// those with # can stand after anything.
func (p *parser) next() {
	p.token, p.quoted = "", false
	for {
		trimmed := strings.TrimLeft(p.rest, " \t\r\n\v\f")
		skipped := p.rest[:len(p.rest)-len(trimmed)]
		p.line += strings.Count(skipped, "\n")
		p.begins = p.begins && skipped == "" || strings.HasSuffix(skipped, "\n")
		p.rest = trimmed
		if !strings.HasPrefix(p.rest, "#") && (!p.begins || !strings.HasPrefix(p.rest, "*")) {
			break
		}
		p.begins = true
		var more bool
		if _, p.rest, more = strings.Cut(p.rest, "\n"); more {
			p.line++
		}
	}
	p.begins = false
	switch {
	case p.rest == "":
	case p.rest[0] == '"':
		var closed bool
		p.token, p.rest, closed = strings.Cut(p.rest[1:], `"`)
		p.line += strings.Count(p.token, "\n")
		p.quoted, p.open = true, !closed
	case strings.ContainsRune("{}=;", rune(p.rest[0])):
		p.token, p.rest = p.rest[:1], p.rest[1:]
	default:
		end := strings.IndexAny(p.rest, separators)
		if end < 0 {
			end = len(p.rest)
		}
		p.token, p.rest = p.rest[:end], p.rest[end:]
	}
}

func (p *parser) is(mark string) bool { return !p.quoted && p.token == mark }

func (p *parser) isWord() bool {
	return p.quoted || p.token != "" && !strings.Contains("{}=;", p.token)
}

// what spells the token for an error.
func (p *parser) what() string {
	if p.token == "" && !p.quoted {
		return "the end of the file"
	}
	if token := []rune(p.token); len(token) > 40 {
		return fmt.Sprintf("%q…", string(token[:40]))
	}
	return fmt.Sprintf("%q", p.token)
}

func (p *parser) errorf(format string, args ...any) error {
	if p.open {
		format, args = "a quotation mark is not closed", nil
	}
	return &SyntaxError{Line: p.line, Why: plain.Line(fmt.Sprintf(format, args...))}
}

// section reads "WORD [NAME] { … }".
func (p *parser) section(depth int) (Section, error) {
	if !p.isWord() {
		return Section{}, p.errorf("found %s; a section is expected here, such as group NAME {", p.what())
	}
	s := Section{Word: p.token, Line: p.line}
	p.next()
	if depth == 0 && p.isWord() {
		s.Name = p.token
		p.next()
	}
	return p.body(s, depth)
}

// body reads "{ … }".
func (p *parser) body(s Section, depth int) (Section, error) {
	if depth >= depthMax {
		return s, p.errorf("sections are nested more than %d deep", depthMax)
	}
	if !p.is("{") {
		return s, p.errorf("found %s; { is expected after %s", p.what(), s.Word)
	}
	p.next()
	for !p.is("}") {
		if !p.isWord() {
			return s, p.errorf("found %s; a name or } is expected in section %s of line %d", p.what(), s.Word, s.Line)
		}
		word, line := p.token, p.line
		p.next()
		if p.is("{") {
			below, err := p.body(Section{Word: word, Line: line}, depth+1)
			if err != nil {
				return s, err
			}
			s.Sections = append(s.Sections, below)
			continue
		}
		if !p.is("=") {
			return s, p.errorf("found %s; = or { is expected after %s", p.what(), word)
		}
		p.next()
		if !p.isWord() {
			return s, p.errorf("found %s; the value of %s is expected here", p.what(), word)
		}
		s.Settings = append(s.Settings, Setting{Name: word, Value: p.token, Line: line})
		p.next()
		switch {
		case p.is(";"):
			p.next()
		case !p.is("}"): // the last one's may be missing: nothing else can be meant
			return s, p.errorf("found %s; a semicolon is expected after the value of %s (a value with spaces needs quotation marks)", p.what(), word)
		}
	}
	p.next()
	return s, nil
}
