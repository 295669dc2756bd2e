package quota

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A memory stands in for a kernel with project quotas. It remembers the attributes of files, by
// their inodes, and the bounds of projects, and counts what is in a project.
type memory struct {
	files  map[uint64]fileAttr
	bounds map[uint32]Bounds
	flags  uint16
	// old says that there is no file_getattr.
	old bool
	// refuse, if it is not nil, may refuse what is asked about a file.
	refuse func(what string, inode uint64) error
	// changed, if it is not nil, is told before a change: the inode of a file that gets a
	// project or loses it, or 0 for new bounds of the project.
	changed func(inode uint64, project uint32, b Bounds)
	synced  int // how often it was told to sync
}

func (m *memory) may(what string, inode uint64) error {
	if m.refuse == nil {
		return nil
	}
	return m.refuse(what, inode)
}

func (m *memory) xattr(fd int) (fsxattr, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fsxattr{}, err
	}
	a := m.files[st.Ino]
	return fsxattr{xflags: uint32(a.xflags), project: a.project}, m.may("read", st.Ino)
}

func (m *memory) setXattr(fd int, x fsxattr) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	return m.mark(st.Ino, fileAttr{xflags: uint64(x.xflags), project: x.project})
}

func (m *memory) mark(inode uint64, a fileAttr) error {
	if err := m.may("mark", inode); err != nil {
		return err
	}
	if m.changed != nil {
		m.changed(inode, a.project, Bounds{})
	}
	m.files[inode] = a
	return nil
}

func (m *memory) attr(dir int, name string) (fileAttr, error) {
	if m.old {
		return fileAttr{}, unix.ENOSYS
	}
	inode, err := inodeAt(dir, name)
	if err != nil {
		return fileAttr{}, err
	}
	return m.files[inode], m.may("read", inode)
}

func (m *memory) setAttr(dir int, name string, a fileAttr) error {
	inode, err := inodeAt(dir, name)
	if err != nil {
		return err
	}
	return m.mark(inode, a)
}

func inodeAt(dir int, name string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st.Ino, err
}

// used counts each file as one block of 4 KiB.
func (m *memory) used(id uint32) (files uint64) {
	for _, a := range m.files {
		if a.project == id {
			files++
		}
	}
	return files
}

func (m *memory) quota(_ *fileSystem, command int, id uint32, d *diskQuota) error {
	switch command {
	case setLimits:
		b, _ := d.read()
		if m.changed != nil {
			m.changed(0, id, b)
		}
		if b == (Bounds{}) {
			delete(m.bounds, id)
		} else {
			m.bounds[id] = b
		}
		return m.may("bound", 0)
	case getNext:
		var known []uint32
		for one := range m.bounds {
			known = append(known, one)
		}
		for _, a := range m.files {
			known = append(known, a.project)
		}
		known = slices.DeleteFunc(known, func(one uint32) bool { return one < id || one == 0 })
		if len(known) == 0 {
			return unix.ENOENT
		}
		id = slices.Min(known)
	}
	b, n := m.bounds[id], m.used(id)
	if b == (Bounds{}) && n == 0 {
		return unix.ENOENT
	}
	*d = diskQuota{id: id, spaceHard: b.Bytes / sector, spaceSoft: b.SoftBytes / sector, inodesHard: b.Files, inodesSoft: b.SoftFiles, space: n * 8, inodes: n}
	return nil
}

func (m *memory) quotaState(*fileSystem) (quotaState, error) {
	return quotaState{flags: m.flags}, m.may("state", 0)
}

func (m *memory) sync(*fileSystem) error {
	m.synced++
	return m.may("sync", 0)
}

// A disk is a file system with quotas, which stands for XFS: a directory with what tests put there.
type disk struct {
	*memory
	Store
	t     *testing.T
	point string // where it is mounted
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: weir opens the device file, and a private copy of the mount (open_tree)")
	}
	dir, err := filepath.EvalSymlinks(quick(t))
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{t: t, point: filepath.Join(dir, "srv"), memory: &memory{files: map[uint64]fileAttr{}, bounds: map[uint32]Bounds{}, flags: accounted | enforced}}
	d.Store = Store{Dir: filepath.Join(dir, "lib/weir/quotas"), Devices: blkdev.New(filepath.Join(dir, "host")), Names: filepath.Join(dir, "projid"), standIn: d.memory}
	d.write("x", "")
	d.mounts("xfs", d.point)
	return d
}

// quick is a directory in memory, where that is possible: a sync then waits for no disk.
func quick(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "weir-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// mounts says what is mounted on the host: the disk, at these points.
func (d *disk) mounts(fstype string, points ...string) {
	d.t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(d.point, &st); err != nil {
		d.t.Fatal(err)
	}
	text := "20 1 0:2 / / rw - rootfs rootfs rw\n"
	for i, point := range points {
		text += fmt.Sprintf("%d 20 %d:%d / %s rw - %s /dev/vdb rw\n", 30+i, unix.Major(st.Dev), unix.Minor(st.Dev), point, fstype)
	}
	file := filepath.Join(filepath.Dir(d.point), "host/proc/1/mountinfo")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) path(name string) string { return filepath.Join(d.point, name) }

// write makes a file of a disk with the directories that it is in.
func (d *disk) write(name, text string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.path(name), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// tree makes a tree with a file of each kind: two directories, a file with two names, a symbolic
// link and a pipe. It returns how many inodes that are.
func (d *disk) tree(name string) (files int) {
	d.t.Helper()
	d.write(name+"/a", "text")
	d.write(name+"/below/b", "text")
	for _, err := range []error{
		os.Link(d.path(name+"/a"), d.path(name+"/below/again")),
		os.Symlink("/etc/passwd", d.path(name+"/link")),
		unix.Mkfifo(d.path(name+"/pipe"), 0o600),
	} {
		if err != nil {
			d.t.Fatal(err)
		}
	}
	return 6
}

func (d *disk) inode(path string) uint64 {
	d.t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		d.t.Fatal(err)
	}
	return st.Ino
}

// in counts the inodes of a tree by their projects.
func (d *disk) in(name string) map[uint32]int {
	d.t.Helper()
	seen, count := map[uint64]bool{}, map[uint32]int{}
	err := filepath.WalkDir(d.path(name), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if inode := d.inode(path); !seen[inode] {
			seen[inode] = true
			count[d.files[inode].project]++
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return count
}

// onRecord are the files of the store, but for those that tell who works on one.
func (d *disk) onRecord() []string {
	d.t.Helper()
	entries, err := os.ReadDir(d.Dir)
	if err != nil && !os.IsNotExist(err) {
		d.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			names = append(names, e.Name())
		}
	}
	return names
}

// quiet is a progress that nobody sees.
func quiet(string, int, int) {}

func bytes(n uint64) Change { return Change{Bytes: &n} }

// set sets a quota that is to be set.
func (d *disk) set(p Place, c Change) Status {
	d.t.Helper()
	st, _, err := d.Set(d.t.Context(), p, c, false, quiet)
	if err != nil {
		d.t.Fatal(err)
	}
	return st
}

func at(dir string) Place { return Place{Dirs: []string{dir}} }

// A recorder notes what is done to a disk, as the steps of a dry run.
type recorder struct {
	d     *disk
	file  string // of the record
	text  string // that it has had so far
	steps []hold.Step
}

func (d *disk) record(project uint32) *recorder {
	r := &recorder{d: d, file: d.Store.path(project)}
	r.text = r.read()
	d.changed = func(inode uint64, project uint32, b Bounds) {
		r.look()
		if inode == 0 {
			r.note(hold.Step{Call: fmt.Sprintf("limit project %d on %s: %s", project, d.point, b)})
			return
		}
		tree := d.treeOf(inode)
		if project == 0 {
			r.note(hold.Step{Call: fmt.Sprintf("unmark %s and all below it, which are in project %d", tree, d.files[inode].project)})
			return
		}
		r.note(hold.Step{Call: fmt.Sprintf("mark %s and all below it as project %d", tree, project)})
	}
	return r
}

func (r *recorder) read() string {
	text, err := os.ReadFile(r.file)
	if err != nil && !os.IsNotExist(err) {
		r.d.t.Fatal(err)
	}
	return string(text)
}

// look notes whether the record has changed.
func (r *recorder) look() {
	if text := r.read(); text != r.text {
		r.text = text
		r.note(hold.Step{File: r.file, Line: text})
	}
}

// note notes a step; the files of one tree are one.
func (r *recorder) note(s hold.Step) {
	if n := len(r.steps); n == 0 || r.steps[n-1] != s {
		r.steps = append(r.steps, s)
	}
}

// treeOf is the directory, right below one of trees or the mount, that an inode is in or is.
func (d *disk) treeOf(inode uint64) string {
	found := ""
	err := filepath.WalkDir(d.point, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && d.inode(path) == inode {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		d.t.Fatalf("inode %d: %q, %v", inode, found, err)
	}
	for _, top := range []string{"data", "c/web/diff", "c/web/work"} {
		if found == d.path(top) || strings.HasPrefix(found, d.path(top)+"/") {
			return d.path(top)
		}
	}
	return found
}
