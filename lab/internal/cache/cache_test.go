package cache

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestHash(t *testing.T) {
	a := Hash([]string{"kernel 6.1", "module loop"})
	if b := Hash([]string{"kernel 6.1", "module loop"}); a != b {
		t.Errorf("one recipe, two hashes: %s and %s", a, b)
	}
	for _, other := range [][]string{{"kernel 6.1"}, {"module loop", "kernel 6.1"}, {"kernel 6.1\nmodule loop"}, {"kernel 6.1", "module loop", ""}} {
		if b := Hash(other); a == b {
			t.Errorf("%q has the hash of another recipe", other)
		}
	}
}

func TestGet(t *testing.T) {
	c, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	built := 0
	get := func(recipe ...string) string {
		t.Helper()
		dir, err := c.Get(context.Background(), "thing", recipe, func(_ context.Context, dir string) error {
			built++
			return os.WriteFile(filepath.Join(dir, "file"), []byte(recipe[0]), 0o644)
		})
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	first := get("a")
	if get("a") != first || built != 1 {
		t.Errorf("same recipe: built %d times", built)
	}
	if get("b") == first || built != 2 {
		t.Errorf("changed recipe: built %d times in all", built)
	}
	if err := os.WriteFile(filepath.Join(first, "file"), []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	get("a")
	if data, err := os.ReadFile(filepath.Join(first, "file")); err != nil || string(data) != "a" {
		t.Errorf("damaged entry was served: %q, %v", data, err)
	}
	if err := c.prune(time.Now().Add(unusedFor + time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("unused entry is still there: %v", err)
	}
}
