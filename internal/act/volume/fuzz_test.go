package volume

import (
	"os"
	"testing"
)

// FuzzRecords: a record that is none hides no other volume, and one is its file's own.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"name":"m","mount":"/m","limit":{"wbps":5}}`))
	f.Add([]byte(`{"name":"z"}`))
	s := Store{Dir: f.TempDir()}
	if err := os.Mkdir(s.records(), 0o700); err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"a", "z"} {
		if err := s.save(Volume{Name: name, Mount: "/" + name}, ready); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		if err := os.WriteFile(s.path("m", ready), record, 0o600); err != nil {
			t.Fatal(err)
		}
		all, _ := s.List()
		if len(all) < 2 || all[0].Name != "a" || all[len(all)-1].Name != "z" {
			t.Errorf("%q hides a volume: %+v", record, all)
		}
		if len(all) == 3 && all[1].Name != "m" {
			t.Errorf("%q is volume %q", record, all[1].Name)
		}
	})
}
