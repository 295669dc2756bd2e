package tree

import (
	"fmt"
	"os"
	"testing"
)

// Of hundreds that are born at once the first are told of before the last have a watch. The caller is asked to share its time
// with others at each.
func TestTheFirstAreToldOfFirst(t *testing.T) {
	dir := t.TempDir()
	looks := 0
	f, err := Open(dir, Options{Each: func() { looks++ }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const born = 500
	for i := range born {
		if err := os.Mkdir(fmt.Sprintf("%s/%064x", dir, i), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	first, err := f.Next(t.Context())
	if err != nil || len(first) > born/5 || looks != 1+len(first) {
		t.Errorf("%d of %d are told of at once, after %d looks: %v", len(first), born, looks, err)
	}
	for n := len(first); n < born; {
		next, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n += len(next)
	}
}
