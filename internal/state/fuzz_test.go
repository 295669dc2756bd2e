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
		mine := 0
		_ = d.Each("run", func(data []byte) error { // its error is of the one in the middle
			if string(data) == `"mine"` {
				mine++
			}
			return nil
		})
		if mine < 2 {
			t.Errorf("%q hides a record", content)
		}
	})
}
