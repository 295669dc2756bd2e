package planned

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
)

// What a power cut leaves of a record is no record, and stands in nobody's way; what nobody could have
// left is an error.
func TestVoidRecords(t *testing.T) {
	lab.Unit(t)
	root := t.TempDir()
	r := record{Target: "docker:1", Name: "docker:web", Plan: "small", Limits: []deviceRule{{Limit: limit.Limit{}.With(limit.WBPS, limit.PerSecond(7))}}}
	if err := r.save(root); err != nil {
		t.Fatal(err)
	}
	if got, err := recordOf(root, r.Target); err != nil || !got.is(&r) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, void := range map[string]bool{"": true, "\x00\x00\x00": true, "{": false} {
		if err := os.WriteFile(filepath.Join(root, records, fileOf(r.Target)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := recordOf(root, r.Target)
		all, errs := recorded(root)
		if got != nil || (err == nil) != void || len(all) != 0 || (errs == nil) != void {
			t.Errorf("%q: %+v, %v; %v, %v", text, got, err, all, errs)
		}
	}
	if err := r.save(root); err != nil { // over what is left
		t.Fatal(err)
	}
	if all, err := recorded(root); err != nil || !all[r.Target].is(&r) {
		t.Errorf("%+v, %v", all, err)
	}
}
