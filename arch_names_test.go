package weir_test

import (
	"go/ast"
	"maps"
	"testing"
)

// mayLoseNames are the files that write JSON with package encoding/json, which puts U+FFFD in the place of each byte that is
// not UTF-8, and why no name of others is lost there. All others write it with internal/base/rawtext.
var mayLoseNames = map[string]string{
	"internal/act/dropin/dropin.go":     "a name that is not printable is refused there",
	"internal/act/pacer/job.go":         "the path is a rawtext.Text",
	"internal/act/quota/record.go":      "the paths are rawtext.Texts",
	"internal/act/volume/record.go":     "the paths are rawtext.Texts",
	"internal/agent/kube/client.go":     "the API server gave the names as JSON",
	"internal/daemon/helper/helper.go":  "values are packed (pack.go)",
	"internal/daemon/helper/pack.go":    "it writes such names in a way of its own",
	"internal/daemon/helper/serve.go":   "values are packed (pack.go)",
	"internal/look/load/report.go":      "figures",
	"internal/look/trace/histogram.go":  "figures",
	"internal/targets/engine/api.go":    "the engine gave the ids as JSON",
	"internal/targets/engine/update.go": "limits and devices",
	"internal/ui/cli/out.go":            "messages are made printable before",
	"internal/ui/web/past.go":           "figures, and nodes of devices",
	"internal/ui/web/stream.go":         "groups are named by ids, and texts are made printable before",
}

func TestNamesAreWrittenWhole(t *testing.T) {
	unused := maps.Clone(mayLoseNames)
	for _, s := range sources(t) {
		if !s.isProgram() || s.dir() == "internal/base/rawtext" || s.dir() == "internal/act/pacer/pacertest" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, is := n.(*ast.SelectorExpr)
			if !is {
				return true
			}
			from, is := call.X.(*ast.Ident)
			if !is || from.Name != "json" || call.Sel.Name != "Marshal" && call.Sel.Name != "MarshalIndent" && call.Sel.Name != "NewEncoder" {
				return true
			}
			if mayLoseNames[s.path] == "" {
				t.Errorf("%s: json.%s loses names that are not UTF-8; use rawtext.Marshal, or say in mayLoseNames why it does not", s.at(n), call.Sel.Name)
			}
			delete(unused, s.path)
			return true
		})
	}
	for path := range unused {
		t.Errorf("%s may write JSON with encoding/json, and does not", path)
	}
}
