package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Debian signs a suite with the keys of its release and of the one before, and
// ships the keys of the next releases in debian-archive-keyring. A system that
// was not updated for years may thus not know a new suite's keys, but it knows
// those of a suite in between: that suite's keyring package is authentic, and
// knows more. The chain climbs from there, a release at a time; no step trusts
// anything that the system's own keyring did not vouch for.

const keyringPackage = "debian-archive-keyring"

// keyringFile is where the package keeps all active keys, by its older name,
// which newer packages keep as a link.
const keyringFile = "usr/share/keyrings/debian-archive-keyring.gpg"

// ring is the keyring that the suite's index was last authenticated with, or ""
// for the system's.
func (s *suite) ring() string {
	path := s.path("keyring.gpg")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// updateThrough authenticates the suite with the keyring package of an older
// one, the nearest that works. why is returned when none does.
func (s *suite) updateThrough(ctx context.Context, why error) error {
	causes := []error{why}
	older := slices.Clone(Suites[:slices.Index(Suites, s.name)])
	slices.Reverse(older)
	for _, name := range older {
		err := s.takeRing(ctx, name)
		if err == nil {
			err = s.updateWith(ctx, s.ring())
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		causes = append(causes, fmt.Errorf("with the keyring of %s: %w", name, err))
	}
	if err := os.Remove(s.path("keyring.gpg")); err != nil && !errors.Is(err, os.ErrNotExist) {
		causes = append(causes, err)
	}
	return errors.Join(causes...)
}

// takeRing copies the keyring of an older suite's package into this suite's
// state. Suites are locked from new to old only, so this cannot deadlock.
func (s *suite) takeRing(ctx context.Context, older string) error {
	p, err := s.archive.Fetch(ctx, older, keyringPackage)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.dir, "keyring")
	if err != nil {
		return fmt.Errorf("take keyring: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := s.archive.Unpack(ctx, p, dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // follows the link, but not out of the package
	if err != nil {
		return fmt.Errorf("take keyring: %w", err)
	}
	defer root.Close()
	file, err := root.Open(keyringFile)
	if err != nil {
		return fmt.Errorf("take keyring of %s: %w", p.DebPath, err)
	}
	defer file.Close()
	keys, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("take keyring of %s: %w", p.DebPath, err)
	}
	fresh := filepath.Join(dir, "fresh.gpg")
	if err := os.WriteFile(fresh, keys, 0o644); err != nil {
		return fmt.Errorf("take keyring: %w", err)
	}
	return os.Rename(fresh, s.path("keyring.gpg"))
}
