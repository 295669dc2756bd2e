package weir_test

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// core are the packages that every front end calls. They depend on nothing that a front end
// decides: they get what they need as arguments, and what they have to say is data.
var core = []string{
	".", "internal/act/mend", "internal/act/quota", "internal/act/volume", "internal/annotations",
	"internal/api", "internal/cgconfig", "internal/host", "internal/keep", "internal/limiting",
	"internal/look/demo", "internal/look/dirty", "internal/look/explain", "internal/look/latency",
	"internal/look/prove", "internal/look/trace", "internal/look/watch", "internal/look/why",
	"internal/note", "internal/planned", "internal/plans", "internal/running", "internal/space",
}

// isUI reports whether a package says how things look.
func isUI(name string) bool {
	return name == "internal/ui" || strings.HasPrefix(name, "internal/ui/")
}

func TestTheCoreKnowsNoFrontEnd(t *testing.T) {
	for _, s := range sources(t) {
		if !s.isProgram() || strings.HasPrefix(s.path, "cmd/") {
			continue
		}
		for _, path := range s.imports() {
			name, _ := ownName(path)
			switch {
			case strings.HasPrefix(name, "cmd/"):
				t.Errorf("%s imports %s: a front end is not a library", s.path, name)
			case isUI(name) && !isUI(s.dir()):
				t.Errorf("%s imports %s: how things look is for front ends", s.path, name)
			case !slices.Contains(core, s.dir()):
			case strings.HasPrefix(path, "github.com/spf13/"):
				t.Errorf("%s imports %s, which is for one front end", s.path, path)
			}
		}
		if !slices.Contains(core, s.dir()) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "os" && slices.Contains([]string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Args"}, selector.Sel.Name) {
				t.Errorf("%s: os.%s; the front end reads that, and passes it on", s.at(n), selector.Sel.Name)
			}
			return true
		})
	}
}

// secondFrontEnd is another front end than the command line: what it can do, any other can.
const secondFrontEnd = "lab/second"

func TestTheSecondFrontEndNeedsNoOther(t *testing.T) {
	found := false
	for _, s := range sources(t) {
		if s.dir() != secondFrontEnd {
			continue
		}
		found = true
		for _, path := range s.imports() {
			name, _ := strings.CutPrefix(path, module)
			if strings.HasPrefix(name, "cmd/") || isUI(name) {
				t.Errorf("%s imports %s, which is of another front end", s.path, name)
			}
		}
	}
	if !found {
		t.Errorf("there is no %s", secondFrontEnd)
	}
}

// told are the packages whose results end in values: internal/api makes the documents of them, so
// that a name in a document and one in the code can change apart.
var told = []string{"internal/look/dirty", "internal/look/explain", "internal/look/latency", "internal/look/prove", "internal/look/trace", "internal/look/why"}

func TestDocumentsAreMadeInOnePlace(t *testing.T) {
	for _, s := range sources(t) {
		if !s.isProgram() || !slices.Contains(told, s.dir()) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && field.Tag != nil && strings.Contains(field.Tag.Value, "json:") {
				t.Errorf("%s: %s; documents are internal/api's", s.at(field), field.Tag.Value)
			}
			return true
		})
	}
}

// maySpellFlags are packages with flags of weir in their texts, and why. In all others, but those of
// front ends, a remedy is data (fault.Remedy), which each front end spells in its own words.
var maySpellFlags = map[string]string{
	".":                     "what the library cannot do is a command, which an administrator runs",
	"internal/act/dropin":   "a file that weir makes names the command that made it, and runs weir",
	"internal/base/cmdline": "it spells commands of weir",
	"internal/look/latency": "its groups are named after the verb",
	"internal/look/trace":   "its advice names commands that are copied to a shell",
	"internal/look/why":     "the fixes of its findings are commands that are copied to a shell",
}

// othersFlags are flags of other programs, by the package that names them.
var othersFlags = map[string]string{
	"internal/agent/install":  "--no-block --now --quiet --system",                     // systemctl, groupadd
	"internal/keep":           "--json --unix-socket",                                  // curl
	"internal/targets/engine": "--no-trunc --user",                                     // docker, systemctl
	"internal/targets/vm":     "--config --connect --domain --quiet --write-bytes-sec", // virsh
}

func TestTheCoreSpellsNoFlags(t *testing.T) {
	unused := maps.Clone(maySpellFlags)
	flag := regexp.MustCompile(`(?:^|[ "(=])(--[a-z][a-z-]*)`)
	for _, s := range sources(t) {
		if !s.isProgram() || strings.HasPrefix(s.path, "cmd/") || isUI(s.dir()) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			for _, found := range flag.FindAllStringSubmatch(strings.Trim(text.Value, "`\""), -1) {
				switch {
				case slices.Contains(strings.Fields(othersFlags[s.dir()]), found[1]):
				case maySpellFlags[s.dir()] != "":
					delete(unused, s.dir())
				default:
					t.Errorf("%s: %s; give the remedy as data", s.at(text), found[1])
				}
			}
			return true
		})
	}
	for dir := range unused {
		t.Errorf("%s may spell flags, and does not", dir)
	}
}
