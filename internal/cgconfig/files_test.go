package cgconfig

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// configured makes files of a host, and names them below its root.
func configured(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("group a { }\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFiles(t *testing.T) {
	lab.Unit(t)
	for about, c := range map[string]struct{ there, want []string }{
		"none":              {nil, []string{MainFile}},
		"the main file":     {[]string{MainFile}, []string{MainFile}},
		"others":            {[]string{MoreDir + "/b.conf", MoreDir + "/a.conf", MoreDir + "/c.txt"}, []string{MoreDir + "/a.conf", MoreDir + "/b.conf"}},
		"the main file too": {[]string{MainFile, MoreDir + "/a.conf"}, []string{MainFile, MoreDir + "/a.conf"}},
	} {
		root := configured(t, c.there...)
		got, err := Files(root)
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], root)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", about, got, err)
		}
	}
}

// A FIFO is not waited for, and a directory of too many files is refused.
func TestFilesOfOtherKinds(t *testing.T) {
	lab.Unit(t)
	root := configured(t, MoreDir+"/a.conf")
	if err := errors.Join(unix.Mkfifo(filepath.Join(root, MoreDir, "fifo.conf"), 0o600), os.Mkdir(filepath.Join(root, MoreDir, "dir.conf"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if got, err := Files(root); err != nil || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
	for i := range filesMost {
		if err := os.Symlink("a.conf", filepath.Join(root, MoreDir, strings.Repeat("x", i%200+1)+string(rune('a'+i/200))+".conf")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Files(root); err == nil || !strings.Contains(err.Error(), "it has 1001 files; weir reads at most 1000") {
		t.Errorf("1001 files: %v", err)
	}
}

func TestRead(t *testing.T) {
	lab.Unit(t)
	root := configured(t, "good.conf")
	in := func(name string) string { return filepath.Join(root, name) }
	if err := errors.Join(os.WriteFile(in("broken.conf"), []byte("group {"), 0o600), os.WriteFile(in("long.conf"), make([]byte, fileBytes+1), 0o600)); err != nil {
		t.Fatal(err)
	}
	if f, err := Read(in("good.conf")); err != nil || f.Name != in("good.conf") || len(f.Sections) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	var syntax *SyntaxError
	if _, err := Read(in("broken.conf")); !errors.As(err, &syntax) {
		t.Errorf("a broken file: %v", err)
	}
	if _, err := Read(in("none.conf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Read(in("long.conf")); err == nil || !strings.Contains(err.Error(), "longer than 1048576 bytes") {
		t.Errorf("a long file: %v", err)
	}
}

func TestGroups(t *testing.T) {
	lab.Unit(t)
	sda, sdb := blkdev.Number{Major: 8}, blkdev.Number{Major: 8, Minor: 16}
	write := limit.Limit{WBPS: limit.PerSecond(1e6)}
	groups := Groups([]GroupLimit{{"f", "/b", 3, sda, write}, {"f", "/", 1, sda, write}, {"f", "/b", 3, sdb, write}, {"g", "/b/c", 2, sda, write}, {"g", "/bc", 9, sda, write}})
	var got []string
	for _, g := range groups {
		for _, l := range g.Limits {
			got = append(got, g.Target()+" "+l.On)
		}
	}
	if want := []string{"cgroup:/b 8:0", "cgroup:/b 8:16", "cgroup:/ 8:0", "cgroup:/b/c 8:0", "cgroup:/bc 8:0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if groups[0].File != "f" || groups[0].Line != 3 || groups[0].IsRoot() || !groups[1].IsRoot() {
		t.Errorf("%+v", groups)
	}
	var nests []string
	all, more := Nests(groups, 4)
	for _, n := range all {
		nests = append(nests, n.Outer.Path+" "+n.Inner.Path)
	}
	if want := []string{"/b /b/c", "/ /b", "/ /b/c", "/ /bc"}; !slices.Equal(nests, want) || more != 0 {
		t.Errorf("nested are %q and %d more, want %q", nests, more, want)
	}
	if some, more := Nests(groups, 2); len(some) != 2 || some[1].Inner.Path != "/b" || more != 2 {
		t.Errorf("%v and %d more", some, more)
	}
}

// A file of somebody else is read whole or not at all, and nothing waits for it.
func TestReadOfOtherKinds(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(unix.Mkfifo(at("fifo"), 0o600), os.Symlink("/dev/zero", at("zero")), os.Symlink(dir, at("dir")), os.WriteFile(at("long"), nil, 0o600), os.Truncate(at("long"), 10<<20),
		os.WriteFile(at("good"), []byte("group a { }\n"), 0o600), os.Symlink("good", at("link"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"fifo": "not a regular file", "zero": "not a regular file", "dir": "not a regular file", "long": "longer than 1048576 bytes"} {
		if _, err := Read(at(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if f, err := Read(at("link")); err != nil || len(f.Sections) != 1 {
		t.Errorf("of a link: %+v, %v", f, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("group a { }\n"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if f, err := Read("/dev/fd/" + strconv.Itoa(int(r.Fd()))); err != nil || len(f.Sections) != 1 {
		t.Errorf("of the caller's pipe: %+v, %v", f, err)
	}
}

// The root of a copied host can have any name.
func TestFilesBelowAnyRoot(t *testing.T) {
	lab.Unit(t)
	root := filepath.Join(configured(t, "a[1]*"+MoreDir+"/x.conf"), "a[1]*")
	if got, err := Files(root); err != nil || !slices.Equal(got, []string{filepath.Join(root, MoreDir, "x.conf")}) {
		t.Errorf("%q, %v", got, err)
	}
}

// As many groups as a file can have take no time that grows with their square, and no list that does:
// four times the text takes not much more than four times a processor's time, whatever else the machine does.
func TestManyGroups(t *testing.T) {
	lab.Unit(t)
	flat := func(bytes int) string {
		var text strings.Builder
		for i := 0; text.Len() < bytes-100; i++ {
			text.WriteString("group g" + strconv.Itoa(i) + "{io{io.max=\"8:0 rbps=1\"}}\n")
		}
		return text.String()
	}
	deep := func(bytes int) string {
		var text strings.Builder
		for name := "a"; text.Len() < bytes-4000; name += "/a" {
			text.WriteString("group " + name + "{io{io.max=\"8:0 rbps=1\"}}\n")
		}
		return text.String()
	}
	takes := func(text string, below bool) time.Duration {
		began := processorTime(t)
		sections, err := Parse(text)
		limits, _ := Limits(File{"f", sections})
		groups := Groups(limits)
		nests, more := Nests(groups, 8)
		took := processorTime(t) - began
		if err != nil {
			t.Error(err)
		}
		pairs := 0
		if below {
			pairs = len(groups) * (len(groups) - 1) / 2
		}
		if len(groups) < 100 || len(nests) != min(8, pairs) || len(nests)+more != pairs {
			t.Errorf("of %d groups %d nests and %d more", len(groups), len(nests), more)
		}
		return took
	}
	for about, text := range map[string]func(int) string{"beside each other": flat, "below each other": deep} {
		below := about == "below each other"
		_ = takes(text(fileBytes), below) // memory that is there by then
		few, many := takes(text(fileBytes/4), below), takes(text(fileBytes), below)
		t.Logf("groups %s: %s, %s", about, few, many)
		if many > 10*few+time.Second {
			t.Errorf("groups %s take %s, and %s where there are four times as many", about, few, many)
		}
	}
}

// processorTime is what this process has had.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
