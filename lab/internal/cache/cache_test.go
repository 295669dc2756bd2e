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
	// Once nothing has changed for a while, only a change has the files read again.
	old := time.Now().Add(-time.Hour)
	file := filepath.Join(first, "file")
	waitSettled(t, first)
	get("a")
	if _, err := os.Stat(first + seenFile); err != nil {
		t.Errorf("nothing is noted of an entry that was checked: %v", err)
	}
	if err := os.WriteFile(first+sumFile, []byte("of others"), 0o644); err != nil {
		t.Fatal(err)
	}
	if get("a"); built != 4 {
		t.Errorf("with another hash on record it was built %d times in all", built)
	}
	waitSettled(t, first)
	get("a")
	if err := os.WriteFile(file, []byte("b"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if get("a"); built != 5 {
		t.Errorf("an entry of the same size that was damaged was served")
	}
	if err := c.prune(time.Now().Add(unusedFor + time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("unused entry is still there: %v", err)
	}
}

// waitSettled waits until an entry's files have not changed for long enough to be noted.
func waitSettled(t *testing.T, dir string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		now, err := look(dir)
		if err != nil || time.Since(began) > 10*settled {
			t.Fatalf("%q, %v", now, err)
		}
		if now != "" {
			return
		}
	}
}
