package quota

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRecords: a record that is none hides no other, and a name for a project is a number's.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"project":7,"trees":[{"path":"/x","inode":5}],"mount":"/","fs":"u"}`), "a:7\n#b:8\n")
	f.Add([]byte(`{"project":7,"trees":[]}`), ":::\n-1:x")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, record []byte, names string) {
		for file, text := range map[string]string{"7.json": string(record), "9.json": `{"project":9,"trees":[{"path":"/y"}]}`, "projid": names} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := Store{Dir: dir, Names: filepath.Join(dir, "projid")}
		all, _ := s.records()
		last := len(all) - 1
		if last < 0 || all[last].Project != 9 {
			t.Errorf("%q hides a record", record)
		}
		for _, r := range all {
			if r.Project != 7 && r.Project != 9 || r.String() == "" && r.Trees[0].Path != "" {
				t.Errorf("%+v", r)
			}
		}
		known, err := s.projectNames()
		if err == nil && len(known) > strings.Count(names, ":") {
			t.Errorf("%q: %v", names, known)
		}
	})
}
