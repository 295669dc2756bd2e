package planfile

import (
	"math/rand/v2"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-io/weir/lab"
)

// However a text is made, its tree has at most three nodes for each mark, and three that each text has.
func TestMarks(t *testing.T) {
	lab.Unit(t)
	texts := []string{"", "a", "a: b", "[1,1,1,1]", "[a: b, c: d]", "[:,:,:,:,:]", "[?,?,?,?]", "{,}", "{a,b,c}", "[[[[]]]]", "- - - - a", "-\n-\n-\n-", "-\u0085-\u2028-\u2029-\r-", "? ? ? a", "?\n?\n?\n",
		": : :", ":\n:\n:", "a:\n b:\n  c:\n   d:", "a: {b: [c, {d: e}]}\nf: -g", "? a\n: b\n? c\n: d", "\"a\":b", "{\"a\":b,'c':d}", "[\"a\":b]", "- a: b\n  c: d\n- e: f", "--- a\n...\n"}
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b", ": ", ":", "- ", "-", "? ", "?", ",", ", ", "[", "]", "{", "}", "\n", "\n ", "\n  ", "\"", "'", "#", " ", "\u0085", "\u2028", "\t", "|\n", ">", "!", "&a ", "*a", "---\n"}
	for range 50_000 {
		var text strings.Builder
		for range random.IntN(20) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		texts = append(texts, text.String())
	}
	trees := 0
	for _, text := range texts {
		var tree yaml.Node
		if yaml.Unmarshal([]byte(text), &tree) != nil {
			continue
		}
		if trees++; nodes(&tree) > 3*Marks([]byte(text))+3 {
			t.Fatalf("%q: %d marks, and %d nodes", text, Marks([]byte(text)), nodes(&tree))
		}
	}
	if trees < 1000 {
		t.Errorf("only %d texts are YAML", trees)
	}
}

func nodes(n *yaml.Node) int {
	all := 1
	for _, below := range n.Content {
		all += nodes(below)
	}
	return all
}

// Words, also with dashes, are no marks; directives are many.
func TestMarksOfWords(t *testing.T) {
	lab.Unit(t)
	for text, want := range map[string]int{"web-1 a-b --c": 0, "10 % of\n": 0, "{docker: \"web-*\", plan: small}": 4, "# a\n": 1, "%TAG !a! b\n%TAG !b! b\n": 2 * directive, "a\r%b": directive} {
		if n := Marks([]byte(text)); n != want {
			t.Errorf("%q: %d, want %d", text, n, want)
		}
	}
}
