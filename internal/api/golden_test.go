package api

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/api/apitest"
	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// TestDocuments holds documents against testdata, byte for byte.
func TestDocuments(t *testing.T) {
	lab.Unit(t)
	moved := Moved{Move: Move{"/x", 3, blkdev.Number{Major: 8}, "/a", "/b"}, Moved: true, Rounds: 2, Seconds: 1.5}
	const asked = "weir why --write 10MB/s --on /data"
	for name, document := range map[string]any{
		"proof":     ProofOf(apitest.Proof(), asked),
		"neighbour": ProofOf(apitest.Neighbour(), asked),
		"less":      ProofOf(apitest.Less(), asked),
		"why":       WhyOf(apitest.Why(), []Moved{moved}),
		"trace":     TraceOf(apitest.Trace()),
		"dirty":     DirtyOf(apitest.Dirty()),
	} {
		got, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		both := struct{ Document, Name any }{document, "\xff"} // with a name that is not UTF-8 beside it
		if text, err := rawtext.Marshal(both); err != nil || string(text) != fmt.Sprintf(`{"Document":%s,"Name":"\ufffd","Name_base64":"/w=="}`, got) {
			t.Errorf("%s: %v: %s", name, err, text)
		}
		want, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != strings.TrimSpace(string(want)) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}
