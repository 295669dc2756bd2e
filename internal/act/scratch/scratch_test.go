package scratch

import (
	"os"
	"testing"
)

func TestTheFileHasNoName(t *testing.T) {
	dir := t.TempDir()
	f, err := nameless(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("x"); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("the directory has %v, %v", names, err)
	}
}

func TestOutsideANamespaceOfItsOwnThereIsNoDisk(t *testing.T) {
	t.Setenv(inside, "")
	if d, err := New(t.Context(), t.TempDir(), 1<<20); err == nil {
		t.Errorf("New = %+v", d)
	}
}
