package planned

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzRecords: a record that is none hides no other, and one is its target's own.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"target":"m","name":"docker:web","plan":"small","limits":[{"device":"8:0","limit":{"wbps":5}}]}`))
	f.Add([]byte(`{"target":"../z"}`))
	f.Add([]byte(`[]`))
	root := f.TempDir()
	for _, target := range []string{"a", "z"} {
		if err := (&record{Target: target}).save(root); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(root, records, fileOf("m")), data, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := recorded(root)
		if all["a"] == nil || all["z"] == nil || len(all) > 3 || len(all) == 3 && (all["m"] == nil || err != nil) {
			t.Errorf("%q: %v, %v", data, all, err)
		}
	})
}
