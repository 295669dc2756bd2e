package planfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-io/weir/internal/base/near"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/plans"
)

// A reader reads one file, and collects what is wrong with it.
type reader struct {
	file     string
	refusals []error
}

func (r *reader) at(n *yaml.Node) plans.Position {
	return plans.Position{File: r.file, Line: n.Line, Column: n.Column}
}

func (r *reader) refuse(n *yaml.Node, format string, args ...any) {
	r.refusals = append(r.refusals, &plans.Refusal{At: r.at(n), Text: fmt.Sprintf(format, args...)})
}

func (r *reader) whole(format string, args ...any) {
	r.refusals = append(r.refusals, &plans.Refusal{At: plans.Position{File: r.file}, Text: fmt.Sprintf(format, args...)})
}

// document parses a file into the tree of its one document; nil: there is none, or it is refused.
func (r *reader) document(text []byte) *yaml.Node {
	if len(text) > plans.FileBytesMax {
		r.whole("the file is larger than %d bytes", plans.FileBytesMax)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var tree, second yaml.Node
	switch err := decoder.Decode(&tree); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		r.syntax(err)
		return nil
	default:
		r.refuse(&second, "a second document begins here; write one document a file")
		return nil
	}
	if len(tree.Content) != 1 || !r.plain(tree.Content[0], 1) {
		return nil
	}
	return tree.Content[0]
}

// syntax refuses what is no YAML. The parser's message begins with "yaml: ", and where it knows
// the line, with "line N: ".
func (r *reader) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	at := plans.Position{File: r.file}
	if rest, is := strings.CutPrefix(text, "line "); is {
		number, message, _ := strings.Cut(rest, ": ")
		if line, err := strconv.Atoi(number); err == nil && line > 0 {
			at.Line, text = line, message
			if strings.HasPrefix(message, "did not find expected") {
				at.Line++ // the parser counts from 0, the scanner from 1 (yaml.v3, decode.go, fail)
			}
		}
	}
	r.refusals = append(r.refusals, &plans.Refusal{At: at, Text: "not YAML: " + plain.Brief(text)})
}

// plain refuses what a plan has no use for, and what would make a small file large: anchors,
// aliases, tags, deep nesting. It stops at the first.
func (r *reader) plain(n *yaml.Node, depth int) bool {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "":
		r.refuse(n, "anchors and aliases (& and *) are not taken; a plan takes over another one with extends")
	case n.Style&yaml.TaggedStyle != 0:
		r.refuse(n, "tags (%s) are not taken; leave it out", plain.Short(n.Tag, 40))
	case depth > depthMax:
		r.refuse(n, "nested too deep")
	default:
		return !slices.ContainsFunc(n.Content, func(below *yaml.Node) bool { return !r.plain(below, depth+1) })
	}
	return false
}

// An entry is a key of a mapping with its value.
type entry struct {
	name       string
	key, value *yaml.Node
}

// entries are those of a mapping; what says what the mapping is. A key that is there twice, or is
// no text, is refused.
func (r *reader) entries(n *yaml.Node, what string) (all []entry) {
	if n.Kind != yaml.MappingNode {
		r.refuse(n, "%s is a mapping: write KEY: VALUE", what)
		return nil
	}
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			r.refuse(key, "%s has a key that is no text; put it in quotes", what)
			continue
		}
		if was := first[key.Value]; was != nil {
			r.refuse(key, "%s has the key %s twice, first in line %d", what, short(key.Value), was.Line)
			continue
		}
		first[key.Value] = key
		all = append(all, entry{key.Value, key, value})
	}
	return all
}

// A field is a key that a mapping may have, and what reads its value.
type field struct {
	key  string
	read func(*yaml.Node)
}

// fields reads a mapping that has only known keys.
func (r *reader) fields(n *yaml.Node, what string, known ...field) {
	var names []string
	for _, f := range known {
		names = append(names, f.key)
	}
	for _, e := range r.entries(n, what) {
		if i := slices.Index(names, e.name); i >= 0 {
			known[i].read(e.value)
			continue
		}
		if len(r.refusals) >= refusalsMax { // no more are told, and to look for what was meant takes a while
			return
		}
		r.refuse(e.key, "%s has no key %s; %s", what, short(e.name), instead(e.name, names))
	}
}

// list reads each item of a list.
func (r *reader) list(n *yaml.Node, what string, most int, read func(*yaml.Node)) {
	switch {
	case n.Kind != yaml.SequenceNode:
		r.refuse(n, "%s is a list: write [A, B], or a line for each that begins with -", what)
	case len(n.Content) > most:
		r.refuse(n, "%s has %d entries, and at most %d are possible", what, len(n.Content), most)
	default:
		for _, item := range n.Content {
			read(item)
		}
	}
}

// text reads one text that is not empty.
func (r *reader) text(n *yaml.Node, what string) (text string, ok bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || n.Value == "":
		r.refuse(n, "%s is missing: write a text", what)
	case n.ShortTag() != "!!str":
		r.refuse(n, "%s is a text: write it in quotes, \"%s\"", what, plain.Short(n.Value, 40))
	case len(n.Value) > textMax:
		r.refuse(n, "%s has %d bytes, and at most %d are possible", what, len(n.Value), textMax)
	case plain.Line(n.Value) != n.Value:
		r.refuse(n, "%s has characters that cannot be shown: %s", what, short(n.Value))
	default:
		return n.Value, true
	}
	return "", false
}

// instead names what was meant, or all that there is.
func instead(typed string, names []string) string {
	if meant := near.Names(plain.Short(typed, nameMax), names); len(meant) > 0 {
		return "did you mean " + either(meant) + "?"
	}
	if len(names) == 0 {
		return "there are none"
	}
	return "write " + either(names[:min(len(names), 20)])
}

// either joins names: "a, b or c".
func either(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
	return strings.Join(names, "")
}

func short(text string) string { return plain.Short(strconv.Quote(text), 80) }
