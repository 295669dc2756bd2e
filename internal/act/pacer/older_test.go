package pacer

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/state"
)

// The pacer of a weir that was replaced by another has left records of its own kind.
func TestRecordsOfOtherWeirs(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run") // for callers other than root
	dir := state.At(t.TempDir())
	if err := os.MkdirAll(dir.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"pace.1.json": `{"limited":{"controller":"blkio","path":"/x"},"stopped":{"controller":"freezer","path":"/x"},"devices":["8:0"],"wbps":5,"own":true}`,
		"pace.2.json": `{"limited":{"path":"/y"},"devices":["8:0"],"wbps":6,"count":"escaped","burst":{"bytes":9}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir.Path(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sda := []blkdev.Number{{Major: 8}}
	want := []Job{{Limited: Place{"blkio", "/x"}, Devices: sda, WBPS: 5}, {Limited: Place{Path: "/y"}, Devices: sda, WBPS: 6, Count: CountEscaped}}
	if jobs, err := Paced(dir); err != nil || !reflect.DeepEqual(jobs, want) {
		t.Errorf("%+v, %v; want %+v", jobs, err, want)
	}
	// One that is damaged is told of, and hides none of the others.
	if err := os.WriteFile(filepath.Join(dir.Path(), "pace.0.json"), []byte(`["x"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if jobs, err := Paced(dir); !state.IsDamaged(err) || !reflect.DeepEqual(jobs, want) {
		t.Errorf("%+v, %v; want %+v", jobs, err, want)
	}
	if jobs, err := readable(dir); err != nil || len(jobs) != 2 {
		t.Errorf("%+v, %v", jobs, err)
	}
}
