package state

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzRecord: a record of any content is read whole, or left out; it never hides another.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`"x"`))
	f.Add([]byte("{"))
	f.Add([]byte{})
	dir := filepath.Join(f.TempDir(), "weir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		f.Fatal(err)
	}
	d := Dir{dir}
	for _, name := range []string{"run.a.json", "run.z.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`"mine"`), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, "run.m.json"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := All[string](d, "run")
		if len(all) < 2 || all[0] != "mine" || all[len(all)-1] != "mine" {
			t.Errorf("%q hides a record: %q", content, all)
		}
		if err != nil && !IsDamaged(err) {
			t.Errorf("%q: %v", content, err)
		}
	})
}
