package debian

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A source is what the system's apt says about its Debian mirror.
type source struct {
	uri      string
	signedBy string // Signed-By as written: a file, a fingerprint, or a key; empty means apt's trusted keys
}

// systemSource finds the Debian mirror in the apt configuration below etc
// (normally /etc/apt), as sources.list(5) says where to look.
func systemSource(etc string) (source, error) {
	files, err := filepath.Glob(filepath.Join(etc, "sources.list.d", "*"))
	if err != nil {
		return source{}, fmt.Errorf("list %s: %w", etc, err)
	}
	files = append([]string{filepath.Join(etc, "sources.list")}, files...)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return source{}, fmt.Errorf("read apt source: %w", err)
		}
		var found []source
		switch filepath.Ext(file) {
		case ".sources":
			found, err = deb822Sources(string(text))
		case ".list":
			found = lineSources(string(text))
		}
		if err != nil {
			return source{}, fmt.Errorf("read apt source %s: %w", file, err)
		}
		if len(found) > 0 {
			return found[0], nil
		}
	}
	return source{}, fmt.Errorf("find Debian mirror in %s: no entry for a Debian suite with component main", etc)
}

// deb822Sources returns the Debian entries of a .sources file.
func deb822Sources(text string) ([]source, error) {
	stanzas, err := parseControl(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	var found []source
	for _, s := range stanzas {
		if strings.EqualFold(s["enabled"], "no") || !slices.Contains(s.words("types"), "deb") {
			continue
		}
		uris := s.words("uris")
		if len(uris) > 0 && isDebian(s.words("suites"), s.words("components")) {
			found = append(found, source{uri: uris[0], signedBy: s["signed-by"]})
		}
	}
	return found, nil
}

// lineSources returns the Debian entries of a one-line-style file:
// deb [option=value …] URI SUITE COMPONENT…
func lineSources(text string) []source {
	var found []source
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !ok {
			continue
		}
		var src source
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			options, after, closed := strings.Cut(rest[1:], "]")
			if !closed {
				continue
			}
			for _, option := range strings.Fields(options) {
				if by, ok := strings.CutPrefix(strings.ToLower(option), "signed-by="); ok {
					src.signedBy = option[len(option)-len(by):]
				}
			}
			rest = after
		}
		words := strings.Fields(rest)
		if len(words) >= 3 && isDebian(words[1:2], words[2:]) {
			src.uri = words[0]
			found = append(found, src)
		}
	}
	return found
}

// isDebian tells Debian's main archive from its security archive and from other
// vendors': those have suites of their own names, or no component main.
func isDebian(suites, components []string) bool {
	if !slices.Contains(components, "main") {
		return false
	}
	return slices.ContainsFunc(suites, func(suite string) bool {
		base, pocket, _ := strings.Cut(suite, "-")
		switch pocket {
		case "", "updates", "backports", "proposed-updates":
			return slices.Contains(archiveNames, base)
		}
		return false
	})
}

// archiveNames are the names under which Debian's archive lists a release. A
// release that is not here yet only matters to a system whose sole entry it is.
var archiveNames = []string{
	"bullseye", "bookworm", "trixie", "forky", "duke", "sid",
	"oldoldstable", "oldstable", "stable", "testing", "unstable",
}

// entry writes src as a .sources stanza for one suite. Only Packages files are
// asked for: other indices (screenshots, translations) are as large again.
func (src source) entry(suite, keyring string) string {
	by := src.signedBy
	if keyring != "" {
		by = keyring
	}
	text := fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nTargets: Packages\n", src.uri, suite)
	if by != "" {
		text += "Signed-By: " + by + "\n"
	}
	return text
}
