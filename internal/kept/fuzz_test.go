package kept

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse: a record is its target's own, and its file stays in the directory.
func FuzzParse(f *testing.F) {
	f.Add("docker%3Aabc", []byte(`{"target":"docker:abc","name":"docker:web","limits":[{"on":"/data","limit":{"wbps":5}}]}`))
	f.Add("..%2Fx", []byte(`{"target":"../x"}`))
	f.Add("", []byte(`{}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		r, err := parse(name, data)
		if err != nil {
			return
		}
		if filepath.Base(Path(r.Target)) != name+suffix {
			t.Errorf("%q is taken for the record of %q", name, r.Target)
		}
		if path := Path(r.Target); filepath.Dir(path) != Dir || strings.Contains(path, "\x00") {
			t.Errorf("the record of %q is %q", r.Target, path)
		}
	})
}
