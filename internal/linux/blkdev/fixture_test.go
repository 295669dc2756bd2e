package blkdev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/linux/mountinfo"
)

// A tree is a root with a /proc, /sys and /dev made for one test.
type tree struct {
	t    testing.TB
	root string
}

func newTree(t testing.TB) tree {
	tr := tree{t, t.TempDir()}
	for _, dir := range []string{"proc/1", "sys/dev/block", "sys/class/block", "dev"} {
		tr.dir(dir)
	}
	return tr
}

func (tr tree) fs() FS { return New(tr.root) }

func (tr tree) dir(p string) {
	tr.t.Helper()
	if err := os.MkdirAll(filepath.Join(tr.root, p), 0o755); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr tree) file(p, content string) {
	tr.t.Helper()
	tr.dir(filepath.Dir(p))
	if err := os.WriteFile(filepath.Join(tr.root, p), []byte(content), 0o644); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr tree) link(p, target string) {
	tr.t.Helper()
	tr.dir(filepath.Dir(p))
	if err := os.Symlink(target, filepath.Join(tr.root, p)); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr tree) remove(p string) {
	tr.t.Helper()
	if err := os.RemoveAll(filepath.Join(tr.root, p)); err != nil {
		tr.t.Fatal(err)
	}
}

// mounts writes the mountinfo of a process, and makes the mount points.
func (tr tree) mounts(pid string, lines ...string) {
	tr.t.Helper()
	tr.file("proc/"+pid+"/mountinfo", strings.Join(lines, "\n")+"\n")
	for _, l := range lines {
		tr.dir(mountinfo.Unescape(strings.Fields(l)[4]))
	}
}

// device adds a device below where ("devices/pci/block" or another device's
// directory), and returns its directory. It is 2048 sectors long.
func (tr tree) device(where, name, number string, attrs ...string) string {
	tr.t.Helper()
	dir := where + "/" + name
	tr.file("sys/"+dir+"/dev", number+"\n")
	tr.file("sys/"+dir+"/size", "2048\n")
	tr.link("sys/dev/block/"+number, "../../"+dir)
	tr.link("sys/class/block/"+name, "../../"+dir)
	for i := 0; i < len(attrs); i += 2 {
		tr.file("sys/"+dir+"/"+attrs[i], attrs[i+1]+"\n")
	}
	return dir
}

func (tr tree) disk(name, number string) string {
	dir := tr.device("devices/pci0000:00/block", name, number)
	tr.dir("sys/" + dir + "/slaves")
	return dir
}

func (tr tree) part(disk, name, number string) string {
	return tr.device(disk, name, number, "partition", "1")
}

const virtual = "devices/virtual/block"

func (tr tree) dm(name, number, dmName, uuid string, slaves ...string) string {
	dir := tr.device(virtual, name, number, "dm/name", dmName, "dm/uuid", uuid)
	tr.slaves(dir, slaves)
	return dir
}

func (tr tree) md(name, number, level string, slaves ...string) string {
	dir := tr.device(virtual, name, number, "md/level", level)
	tr.slaves(dir, slaves)
	return dir
}

func (tr tree) loop(name, number, file, dio string) string {
	return tr.device(virtual, name, number, "loop/backing_file", file, "loop/dio", dio)
}

func (tr tree) slaves(dir string, of []string) {
	tr.dir("sys/" + dir + "/slaves")
	for _, s := range of {
		tr.link("sys/"+dir+"/slaves/"+filepath.Base(s), "../../../../../"+s)
	}
}
