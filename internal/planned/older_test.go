package planned

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// A record of another weir says what is in force, whatever else it has.
func TestRecordsOfOtherWeirs(t *testing.T) {
	lab.Unit(t)
	root := t.TempDir()
	if err := storeOf(root).Make(); err != nil {
		t.Fatal(err)
	}
	want := record{Target: "docker:0123", Name: "docker:web", Plan: "small", Limits: []deviceRule{{blkdev.Number{Major: 8}, limit.Limit{}.With(limit.WBPS, limit.PerSecond(7))}}}
	for _, text := range []string{
		`{"target":"docker:0123","name":"docker:web","plan":"small","limits":[{"device":"8:0","limit":{"wbps":7}}]}` + "\n",
		`{"target":"docker:0123","name":"docker:web","plan":"small","limits":[{"device":"8:0","limit":{"wbps":7},"burst":1}],"since":"2030-01-01T00:00:00Z"}`,
	} {
		if err := os.WriteFile(filepath.Join(root, records, "docker%3A0123.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := recordOf(root, "docker:0123"); err != nil || !r.is(&want) {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
		if all, err := recorded(root); err != nil || len(all) != 1 || !all["docker:0123"].is(&want) {
			t.Errorf("%s: %+v, %v", text, all, err)
		}
	}
}
