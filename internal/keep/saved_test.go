package keep

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
)

func TestRecords(t *testing.T) {
	root := t.TempDir()
	if all, err := ListSaved(root); all != nil || err != nil {
		t.Errorf("without a directory: %v, %v", all, err)
	}
	rate, err := limit.ParseBytes("10MB/s")
	if err != nil {
		t.Fatal(err)
	}
	entries := []limit.Asked{{On: "/data", Limit: limit.Limit{}.With(limit.WBPS, rate), Hold: "auto"}}
	want := []Saved{{"containerd:ns/one", "containerd:ns/one", "", entries}, {"docker:0123", "docker:web", "unix:///d.sock", entries}}
	for _, r := range want {
		text, err := r.Text()
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(root, SavedPath(r.Target)), text)
	}
	put(t, filepath.Join(root, SavedDir, "docker%3A0123.json.12.new"), "half")
	if got, err := ListSaved(root); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, err := ReadSaved(root, "docker:0123"); err != nil || !reflect.DeepEqual(got, want[1]) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := ReadSaved(root, "docker:other"); err != nil || got.Target != "docker:other" || got.Entries != nil {
		t.Errorf("of one without a record: %+v, %v", got, err)
	}
	if text, err := (Saved{Target: "docker:0123"}).Text(); text != "" || err != nil {
		t.Errorf("without limits: %q, %v", text, err)
	}
	// A target's name leads to no other directory.
	for _, name := range []string{"containerd:../../x", "docker:a/../b"} {
		if got := filepath.Dir(SavedPath(name)); got != SavedDir {
			t.Errorf("%s is kept in %s", name, got)
		}
	}
}

func TestBrokenRecords(t *testing.T) {
	for _, text := range []string{"", "{", `{"target":"docker:other","limits":[]}`} {
		root := t.TempDir()
		put(t, filepath.Join(root, SavedPath("docker:web")), text)
		if _, err := ReadSaved(root, "docker:web"); err == nil || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%q is read: %v", text, err)
		}
		if all, err := ListSaved(root); err == nil || len(all) != 0 {
			t.Errorf("%q is listed: %v, %v", text, all, err)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
