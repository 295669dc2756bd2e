package debian

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const copyright = "usr/share/doc/hostname/copyright"

func hostname(version string) pkg {
	return pkg{name: "hostname", version: version, files: map[string][]byte{copyright: []byte("free\n")}}
}

func TestArchive(t *testing.T) {
	m, key := newMirror(t), newSigner("release")
	m.publish("trixie", key, hostname("3.25"),
		pkg{name: "linux-image-cloud-amd64", version: "6.12.1-1", depends: "linux-image-6.12 (= 6.12.1-1) | other, kmod"})
	a := m.archive(key)
	ctx := t.Context()
	first, err := a.Fetch(ctx, "trixie", "hostname")
	if err != nil {
		t.Fatal(err)
	}
	if first.Name != "hostname" || first.Suite != "trixie" || first.Version != "3.25" {
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
	if _, err := os.Stat(filepath.Join(dir, copyright)); err != nil {
		t.Error(err)
	}

	deps, err := a.Depends(ctx, "trixie", "linux-image-cloud-amd64")
	if err != nil || !slices.Equal(deps, []string{"linux-image-6.12", "kmod"}) {
		t.Errorf("dependencies of the kernel metapackage: %q, %v", deps, err)
	}
	if _, err := a.Fetch(ctx, "trixie", "no-package-of-this-name"); !errors.Is(err, ErrNoPackage) {
		t.Errorf("unknown package: %v", err)
	}
	if _, err := a.Fetch(ctx, "warty", "hostname"); err == nil {
		t.Error("unknown suite: no error")
	}
}

// TestVersionIsGone: the index is a day old, and the mirror has another version by now.
func TestVersionIsGone(t *testing.T) {
	m, key := newMirror(t), newSigner("release")
	m.publish("sid", key, hostname("3.25"))
	a := m.archive(key)
	if v, err := a.Version(t.Context(), "sid", "hostname"); err != nil || v != "3.25" {
		t.Fatalf("version %q, %v", v, err)
	}
	if err := os.RemoveAll(filepath.Join(m.dir, "pool")); err != nil {
		t.Fatal(err)
	}
	m.publish("sid", key, hostname("3.26"))
	p, err := a.Fetch(t.Context(), "sid", "hostname")
	if err != nil || p.Version != "3.26" {
		t.Errorf("got version %q, %v", p.Version, err)
	}
}

// TestKeyOfALaterSuite: the system knows the old release's key only; that release's
// keyring package has the next one's. A key that nobody vouches for is refused.
func TestKeyOfALaterSuite(t *testing.T) {
	m, old, next := newMirror(t), newSigner("old release"), newSigner("next release")
	m.publish("bookworm", old, pkg{name: keyringPackage, version: "1",
		files: map[string][]byte{keyringFile: slices.Concat(old.keyring(), next.keyring())}})
	m.publish("trixie", next, hostname("3.25"))
	m.publish("forky", newSigner("somebody"), hostname("3.26"))
	a := m.archive(old)
	if _, err := a.Fetch(t.Context(), "trixie", "hostname"); err != nil {
		t.Error(err)
	}
	if _, signedBy, err := a.Mirror(t.Context(), "trixie"); err != nil || !strings.HasSuffix(signedBy, "/trixie/keyring.gpg") {
		t.Errorf("keys for others: %q, %v", signedBy, err)
	}
	if _, err := a.Fetch(t.Context(), "forky", "hostname"); !errors.Is(err, errUnsigned) {
		t.Errorf("a suite signed by an unknown key: %v", err)
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
