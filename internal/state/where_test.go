package state

import (
	"os"
	"path/filepath"
	"testing"
)

// Whoever makes a user's directory in /tmp first does not keep the user from running weir.
func TestWhereRecordsAre(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it gives directories to other users")
	}
	const user, other = 4711, 4712
	dir := func(root, name string, uid int) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(root, name), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		make func(root string)
		env  map[string]string
		want string
	}{
		"no session": {func(root string) { dir(root, "home/u", user) }, map[string]string{"HOME": "/home/u"}, "tmp/weir-4711"},
		"its own":    {func(root string) { dir(root, "home/u", user); dir(root, "tmp/weir-4711", user) }, map[string]string{"HOME": "/home/u"}, "tmp/weir-4711"},
		"another's":  {func(root string) { dir(root, "home/u", user); dir(root, "tmp/weir-4711", other) }, map[string]string{"HOME": "/home/u"}, "home/u/.local/state/weir"},
		"a link": {func(root string) {
			dir(root, "home/u", user)
			dir(root, "tmp", 0)
			if err := os.Symlink("/etc", filepath.Join(root, "tmp/weir-4711")); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"HOME": "/home/u"}, "home/u/.local/state/weir"},
		"another's, and a home of another's": {func(root string) { dir(root, "home/u", other); dir(root, "tmp/weir-4711", other) }, map[string]string{"HOME": "/home/u"}, "tmp/weir-4711"},
		"another's, and no home":             {func(root string) { dir(root, "tmp/weir-4711", other) }, nil, "tmp/weir-4711"},
	} {
		root := t.TempDir()
		c.make(root)
		if got := inTmp(root, user, c.env["HOME"]).Path(); got != filepath.Join(root, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
