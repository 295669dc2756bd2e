package debian

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mirror is a small archive in a folder. apt reads it by its file method, and takes
// it for what it is only if it is signed.
type mirror struct {
	t    *testing.T
	dir  string
	arch string
}

func newMirror(t *testing.T) mirror {
	t.Helper()
	arch, err := command(t.Context(), "", "dpkg", "--print-architecture")
	if err != nil {
		t.Fatal(err)
	}
	return mirror{t: t, dir: t.TempDir(), arch: strings.TrimSpace(string(arch))}
}

// archive is one whose system knows the mirror, and trusts one key for it.
func (m mirror) archive(trusted signer) *Archive {
	m.t.Helper()
	etc := m.t.TempDir()
	ring := filepath.Join(etc, "trusted.gpg")
	m.write(ring, trusted.keyring())
	m.write(filepath.Join(etc, "sources.list"), fmt.Appendf(nil, "deb [signed-by=%s] file:%s trixie main\n", ring, m.dir))
	a, err := open(m.t.TempDir(), etc)
	if err != nil {
		m.t.Fatal(err)
	}
	return a
}

// A pkg is a package to publish.
type pkg struct {
	name, version, depends string
	files                  map[string][]byte
}

// publish makes packages and the signed index of a suite that has just these.
func (m mirror) publish(suite string, by signer, packages ...pkg) {
	m.t.Helper()
	var index strings.Builder
	for _, p := range packages {
		control := m.control(p)
		path := m.deb(p, control)
		data, err := os.ReadFile(filepath.Join(m.dir, path))
		if err != nil {
			m.t.Fatal(err)
		}
		fmt.Fprintf(&index, "%sFilename: %s\nSize: %d\nSHA256: %x\n\n", control, path, len(data), sha256.Sum256(data))
	}
	dist := filepath.Join(m.dir, "dists", suite)
	list := "main/binary-" + m.arch + "/Packages"
	m.write(filepath.Join(dist, list), []byte(index.String()))
	release := fmt.Sprintf("Origin: weir's tests\nSuite: %[1]s\nCodename: %[1]s\nDate: Wed, 01 Jan 2020 00:00:00 UTC\n"+
		"Architectures: %[2]s\nComponents: main\nSHA256:\n %[3]x %[4]d %[5]s\n",
		suite, m.arch, sha256.Sum256([]byte(index.String())), index.Len(), list)
	m.write(filepath.Join(dist, "InRelease"), []byte(by.message(release)))
}

func (m mirror) control(p pkg) string {
	text := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: nobody\nDescription: for tests\n", p.name, p.version, m.arch)
	if p.depends != "" {
		text += "Depends: " + p.depends + "\n"
	}
	return text
}

// deb builds a package and gives its path in the mirror.
func (m mirror) deb(p pkg, control string) string {
	m.t.Helper()
	tree := m.t.TempDir()
	if err := os.Chmod(tree, 0o755); err != nil { // it becomes the package's root
		m.t.Fatal(err)
	}
	m.write(filepath.Join(tree, "DEBIAN/control"), []byte(control))
	for name, data := range p.files {
		m.write(filepath.Join(tree, name), data)
	}
	path := filepath.Join("pool", p.name+"_"+p.version+".deb")
	if err := os.MkdirAll(filepath.Join(m.dir, "pool"), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if _, err := command(m.t.Context(), "", "dpkg-deb", "--build", "--root-owner-group", tree, filepath.Join(m.dir, path)); err != nil {
		m.t.Fatal(err)
	}
	return path
}

func (m mirror) write(path string, data []byte) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		m.t.Fatal(err)
	}
}
