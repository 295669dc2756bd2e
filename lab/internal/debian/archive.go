package debian

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Suites are the suites known to the lab, from old to new. A suite's keyring
// package knows the keys of the suites after it, see keyring.go.
var Suites = []string{
	"bullseye",
	"bookworm", "bookworm-backports",
	"trixie", "trixie-backports",
	"forky", "sid",
}

// An Archive gives access to Debian's archive through the system's mirror. It
// is safe for use by several goroutines and processes at once.
type Archive struct {
	dir string // absolute
	src source

	mu    sync.Mutex
	known map[string]record // by suite and package, since the suite's index was last got; without a name: there is none
}

// A Package is one downloaded package.
type Package struct {
	Name    string
	Version string
	Suite   string // the suite it was asked for from
	DebPath string // the .deb in the cache; do not change it
	SHA256  string // of the .deb, in lower-case hexadecimal
}

// Open uses cacheDir, which it makes if need be, for indices and packages. It
// reads the system's apt sources and asks the network nothing.
func Open(cacheDir string) (*Archive, error) {
	return open(cacheDir, "/etc/apt")
}

func open(cacheDir, etc string) (*Archive, error) {
	src, err := systemSource(etc)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(cacheDir)
	if err != nil {
		return nil, fmt.Errorf("open archive %s: %w", cacheDir, err)
	}
	a := &Archive{dir: dir, src: src, known: map[string]record{}}
	if err := os.MkdirAll(a.pool(), 0o755); err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	if err := a.prune(); err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	return a, nil
}

// Fetch downloads suite's current version of pkg, unless the cache has it.
// Metapackages are fetched as themselves; see Depends.
func (a *Archive) Fetch(ctx context.Context, suite, pkg string) (Package, error) {
	p, err := a.fetch(ctx, suite, pkg)
	if err != nil {
		return Package{}, fmt.Errorf("fetch %s of %s: %w", pkg, suite, err)
	}
	return p, nil
}

func (a *Archive) fetch(ctx context.Context, suite, pkg string) (Package, error) {
	s, err := a.lockSuite(ctx, suite)
	if err != nil {
		return Package{}, err
	}
	defer s.unlock()
	rec, err := s.record(ctx, pkg)
	if err != nil {
		return Package{}, err
	}
	p, err := s.deb(ctx, rec)
	if err == nil || ctx.Err() != nil {
		return p, err
	}
	// The index may be a day old, and its version gone from the mirror.
	if again := s.update(ctx); again != nil {
		return Package{}, errors.Join(err, again)
	}
	if rec, err = s.record(ctx, pkg); err != nil {
		return Package{}, err
	}
	return s.deb(ctx, rec)
}

// Depends lists the names in pkg's Pre-Depends and Depends fields in their
// order; of alternatives, the first. It does not recurse.
func (a *Archive) Depends(ctx context.Context, suite, pkg string) ([]string, error) {
	rec, err := a.lookUp(ctx, suite, pkg)
	if err != nil {
		return nil, fmt.Errorf("look up dependencies of %s in %s: %w", pkg, suite, err)
	}
	return rec.depends, nil
}

// Version is the version of pkg that Fetch would get from suite.
func (a *Archive) Version(ctx context.Context, suite, pkg string) (string, error) {
	rec, err := a.lookUp(ctx, suite, pkg)
	if err != nil {
		return "", fmt.Errorf("look up version of %s in %s: %w", pkg, suite, err)
	}
	return rec.version, nil
}

// Newest finds the suite of Suites with the highest version of pkg, the older
// suite when two have the same. A suite that cannot be read is passed over with
// a warning; it is an error when none has the package.
func (a *Archive) Newest(ctx context.Context, pkg string) (suite, version string, err error) {
	var causes []error
	for _, name := range Suites {
		rec, err := a.lookUp(ctx, name, pkg)
		if err != nil {
			causes = append(causes, fmt.Errorf("%s: %w", name, err))
			if !errors.Is(err, ErrNoPackage) {
				slog.Warn("suite passed over", "suite", name, "package", pkg, "error", err)
			}
			continue
		}
		if suite == "" || Compare(rec.version, version) > 0 {
			suite, version = name, rec.version
		}
	}
	if suite == "" {
		return "", "", fmt.Errorf("find newest %s: %w", pkg, errors.Join(causes...))
	}
	return suite, version, nil
}

// Unpack extracts a package's files below dir, which it makes if need be. No
// maintainer script runs.
func (a *Archive) Unpack(ctx context.Context, p Package, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("unpack %s: %w", p.Name, err)
	}
	if _, err := command(ctx, "", "dpkg-deb", "-x", p.DebPath, dir); err != nil {
		return fmt.Errorf("unpack %s %s: %w", p.Name, p.Version, err)
	}
	return nil
}

// Mirror is the address of the system's Debian mirror and the keys apt should
// trust for it, as Signed-By of a sources entry (empty: apt's trusted keys), for
// tools that build whole systems. It authenticates suite first, so that the keys
// are ones that suite is signed with.
func (a *Archive) Mirror(ctx context.Context, suite string) (uri, signedBy string, err error) {
	s, err := a.lockSuite(ctx, suite)
	if err != nil {
		return "", "", fmt.Errorf("find mirror of %s: %w", suite, err)
	}
	defer s.unlock()
	signedBy = a.src.signedBy
	if ring := s.ring(); ring != "" {
		signedBy = ring
	}
	return a.src.uri, signedBy, nil
}

func (a *Archive) lookUp(ctx context.Context, suite, pkg string) (record, error) {
	s, err := a.lockSuite(ctx, suite)
	if err != nil {
		return record{}, err
	}
	defer s.unlock()
	return s.record(ctx, pkg)
}

// lockSuite locks suite's state and brings its index up to date.
func (a *Archive) lockSuite(ctx context.Context, name string) (*suite, error) {
	if !slices.Contains(Suites, name) {
		return nil, fmt.Errorf("suite %s: not one of %v", name, Suites)
	}
	s := &suite{archive: a, name: name, dir: filepath.Join(a.dir, name)}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("suite %s: %w", name, err)
	}
	unlock, err := lock(ctx, filepath.Join(s.dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("suite %s: %w", name, err)
	}
	s.unlock = unlock
	if err := s.refresh(ctx); err != nil {
		unlock()
		return nil, fmt.Errorf("suite %s: %w", name, err)
	}
	return s, nil
}
