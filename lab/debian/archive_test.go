package debian

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestArchive uses the system's mirror: it gets the index of the newest stable
// suite and a small package.
func TestArchive(t *testing.T) {
	if testing.Short() {
		t.Skip("downloads an index of 10 MB")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	a, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, err := a.Fetch(ctx, "trixie", "hostname")
	if err != nil {
		t.Fatal(err)
	}
	if first.Name != "hostname" || first.Suite != "trixie" || first.Version == "" {
		t.Errorf("got %+v", first)
	}
	before, err := os.Stat(first.DebPath)
	if err != nil {
		t.Fatal(err)
	}

	again, err := a.Fetch(ctx, "trixie", "hostname")
	if err != nil || again != first {
		t.Errorf("second fetch: %+v, %v", again, err)
	}
	if after, err := os.Stat(first.DebPath); err != nil || !os.SameFile(before, after) {
		t.Errorf("second fetch downloaded again: %v", err)
	}

	if err := os.WriteFile(first.DebPath, []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Fetch(ctx, "trixie", "hostname"); err != nil {
		t.Fatal(err)
	}
	if sum, err := fileSHA256(first.DebPath); err != nil || sum != first.SHA256 {
		t.Errorf("damaged file was not replaced: %s, %v", sum, err)
	}

	dir := filepath.Join(t.TempDir(), "tree")
	if err := a.Unpack(ctx, first, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "usr/share/doc/hostname/copyright")); err != nil {
		t.Error(err)
	}

	deps, err := a.Depends(ctx, "trixie", "linux-image-cloud-amd64")
	if err != nil || len(deps) != 1 || !strings.HasPrefix(deps[0], "linux-image-") {
		t.Errorf("dependencies of the kernel metapackage: %q, %v", deps, err)
	}
	if _, err := a.Fetch(ctx, "trixie", "no-package-of-this-name"); !errors.Is(err, ErrNoPackage) {
		t.Errorf("unknown package: %v", err)
	}
	if _, err := a.Fetch(ctx, "warty", "hostname"); err == nil {
		t.Error("unknown suite: no error")
	}
}

func TestLockEndsWithContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*lockPoll)
	defer cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("held lock: %v", err)
	}
	release()
	again, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
