package debian

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// A suite is the apt state of one suite, locked by whoever holds the value.
type suite struct {
	archive *Archive
	name    string
	dir     string
	unlock  func()
}

func (s *suite) path(name string) string { return filepath.Join(s.dir, name) }

// configuration is an apt.conf(5) that replaces every path apt would write to.
// It is given with -c, which apt reads after the system's own configuration, so
// the mirror's proxy and options still apply. The hooks of the system's apt
// (clean its caches, refresh its software centre) are none of this state's.
const configuration = `#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Default-Release;
#clear Acquire::Languages;
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Acquire::Retries "3";
APT::Sandbox::User "root";
Dir::State "%[1]s/state";
Dir::State::lists "%[1]s/lists";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
Dir::Etc::sourcelist "%[1]s/debian.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
`

// lay writes the state's files for a keyring ("" for the system's).
func (s *suite) lay(keyring string) error {
	for _, dir := range []string{"state", "lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			return err
		}
	}
	files := map[string]string{
		"status":         "",
		"apt.conf":       fmt.Sprintf(configuration, s.dir),
		"debian.sources": s.archive.src.entry(s.name, keyring),
	}
	for name, text := range files {
		if old, err := os.ReadFile(s.path(name)); err == nil && string(old) == text {
			continue
		}
		if err := os.WriteFile(s.path(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// apt runs one of apt's programs with this state.
func (s *suite) apt(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	return command(ctx, dir, program, append([]string{"-c", s.path("apt.conf"), "-q"}, args...)...)
}

// ErrNoPackage is the cause when a suite's index has no package of a name.
var ErrNoPackage = errors.New("no such package")

// A record is what an index says of one package.
type record struct {
	name    string
	version string
	sha256  string
	depends []string
}

// record is what the suite's index says of pkg's current version. apt is asked once: it takes a
// quarter of a second.
func (s *suite) record(ctx context.Context, pkg string) (record, error) {
	a, key := s.archive, s.name+" "+pkg
	a.mu.Lock()
	rec, known := a.known[key]
	a.mu.Unlock()
	if known && rec.name == "" {
		return record{}, ErrNoPackage
	}
	if known {
		return rec, nil
	}
	rec, err := s.read(ctx, pkg)
	if err == nil || errors.Is(err, ErrNoPackage) {
		a.mu.Lock()
		a.known[key] = rec
		a.mu.Unlock()
	}
	return rec, err
}

// forget is for what is known of an index that has changed.
func (s *suite) forget() {
	s.archive.mu.Lock()
	defer s.archive.mu.Unlock()
	maps.DeleteFunc(s.archive.known, func(key string, _ record) bool { return strings.HasPrefix(key, s.name+" ") })
}

// read reads pkg's current version from the suite's index.
func (s *suite) read(ctx context.Context, pkg string) (record, error) {
	out, err := s.apt(ctx, "", "apt-cache", "show", "--no-all-versions", pkg)
	var failed *commandError
	if errors.As(err, &failed) && strings.Contains(failed.output, "No packages found") {
		return record{}, ErrNoPackage
	}
	if err != nil {
		return record{}, err
	}
	stanzas, err := parseControl(strings.NewReader(string(out)))
	if err != nil {
		return record{}, err
	}
	for _, st := range stanzas {
		if st["package"] != pkg { // apt-cache takes patterns, and shows providers
			continue
		}
		rec := record{name: pkg, version: st["version"], sha256: strings.ToLower(st["sha256"])}
		if rec.version == "" || len(rec.sha256) != 64 {
			return record{}, fmt.Errorf("index entry of %s: no version or no SHA-256", pkg)
		}
		rec.depends = append(dependencies(st["pre-depends"]), dependencies(st["depends"])...)
		return rec, nil
	}
	return record{}, ErrNoPackage
}
