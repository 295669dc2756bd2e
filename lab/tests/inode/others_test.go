package inode_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/lab"
)

// A process's open files are found, each with its owner, and can be mended by their handle.
func (p parts) ofProcess(t *testing.T) {
	first, second := group(t, "first"), group(t, "second")
	file := filepath.Join(p.disk.Dir, "process")
	p.writer.in(t, first, nil, "fill", file)
	var fd int
	p.writer.in(t, second, &fd, "open", file, strconv.Itoa(unix.O_WRONLY))
	defer p.writer.in(t, second, nil, "close", strconv.Itoa(fd))
	r, err := reader()
	if err != nil {
		t.Fatal(err)
	}
	files, err := r.OfProcesses(t.Context(), []int{p.writer.pid})
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Path != file {
			continue
		}
		if f.PID != p.writer.pid || f.FD != fd || !f.Writes() || f.IsDirect() || f.Inode != st.Ino || f.Device != p.disk.Number || f.Owner.Memory.Path != first.Path() {
			t.Errorf("%+v", f)
		}
		p.mender.in(t, second, nil, "mend", f.Handle())
		owned(t, file, second)
		return
	}
	t.Errorf("%s is not among %+v", file, files)
}

// An inode that was not dirtied since it was read has no owner; Mend takes it. One that
// is the group's already is left alone.
func (p parts) nobody(t *testing.T) {
	g := group(t, "only")
	file := filepath.Join(p.disk.Dir, "nobody")
	p.writer.in(t, g, nil, "fill", file)
	if err := unix.Unmount(p.disk.Dir, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(p.disk.Node, p.disk.Dir, p.disk.FS, unix.MS_NOATIME, ""); err != nil {
		t.Fatal(err)
	}
	if o := at(t, file).Owner; o.State != inode.Nobody {
		t.Errorf("after it was mounted anew the owner is %+v", o)
	}
	var m inode.Mended
	p.mender.in(t, g, &m, "mend", file)
	owned(t, file, g)
	if p.mender.in(t, g, &m, "mend", file); m.Rounds != 0 {
		t.Errorf("%d rounds for a file that was the group's already", m.Rounds)
	}
}

// refusedAs mends a file that is another group's, and wants to be refused.
func (p parts) refusedAs(t *testing.T, file, want string) {
	t.Helper()
	err := p.mender.tryIn(group(t, "mender"), nil, "mend", file)
	var e *handError
	if !errors.As(err, &e) || !e.refused || !strings.Contains(e.text, want) {
		t.Errorf("mend %s: %v; want a refusal with %q in it", file, err, want)
	}
}

func (p parts) refused(t *testing.T) {
	path := func(name string) string { return filepath.Join(p.disk.Dir, name) }
	if err := os.WriteFile(path("empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path("hole"), nil, 0o600), os.Truncate(path("hole"), 1<<20)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"empty", "hole"} {
		t.Run(name, func(t *testing.T) { p.refusedAs(t, path(name), "has only holes") })
	}
	t.Run("immutable", func(t *testing.T) {
		if err := fill(path("immutable")); err != nil {
			t.Fatal(err)
		}
		immutable(t, path("immutable"), true)
		defer immutable(t, path("immutable"), false)
		p.refusedAs(t, path("immutable"), "operation not permitted")
	})
	t.Run("tmpfs", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.refusedAs(t, file, "has no cgroup writeback")
	})
}

func immutable(t *testing.T, path string, on bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		t.Fatal(err)
	}
	const immutableFlag = 0x10 // FS_IMMUTABLE_FL in include/uapi/linux/fs.h
	if flags &^= immutableFlag; on {
		flags |= immutableFlag
	}
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags)); err != nil {
		t.Fatal(err)
	}
}

// Where somebody does direct I/O, a dirty page could undo a write.
func (p parts) direct(t *testing.T) {
	file := filepath.Join(p.disk.Dir, "direct")
	if err := fill(file); err != nil {
		t.Fatal(err)
	}
	g := group(t, "writer")
	var fd int
	p.writer.in(t, g, &fd, "open", file, strconv.Itoa(unix.O_RDWR|unix.O_DIRECT))
	p.refusedAs(t, file, "process "+strconv.Itoa(p.writer.pid)+" has it open for direct I/O")
	p.writer.in(t, g, nil, "close", strconv.Itoa(fd))
}

func (p parts) loop(t *testing.T) {
	lab.Need(t, lab.BPF, lab.Loop, lab.Command("losetup"))
	file := filepath.Join(p.disk.Dir, "image")
	if err := fill(file); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", "--direct-io=on", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	node := strings.TrimSpace(string(out))
	defer func() {
		if err := exec.Command("losetup", "--detach", node).Run(); err != nil {
			t.Error(err)
		}
	}()
	p.refusedAs(t, file, node+" does direct I/O on it")
}

// On an overlay the owner is that of the file beneath. A file of the lower layer is not
// copied up.
func (p parts) overlay(t *testing.T) {
	lab.Need(t, lab.BPF, lab.Overlay)
	dir := func(name string) string { return filepath.Join(p.disk.Dir, name) }
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	first, second := group(t, "first"), group(t, "second")
	p.writer.in(t, first, nil, "fill", dir("lower/below"))
	if err := unix.Mount("overlay", dir("merged"), "overlay", 0, "lowerdir="+dir("lower")+",upperdir="+dir("upper")+",workdir="+dir("work")); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(dir("merged"), 0); err != nil {
			t.Error(err)
		}
	}()
	p.writer.in(t, first, nil, "fill", dir("merged/file"))
	above, beneath := at(t, dir("merged/file")), at(t, dir("upper/file"))
	if !above.Beneath || beneath.Beneath || above.Inode != beneath.Inode || above.Device != beneath.Device || above.Owner != beneath.Owner {
		t.Errorf("through the overlay %+v,\nbeneath it %+v", above, beneath)
	}
	owned(t, dir("merged/file"), first)
	var fd int // kernels before 6.7 do not tell which layer a file is in that nobody writes to
	p.writer.in(t, second, &fd, "open", dir("merged/file"), strconv.Itoa(unix.O_WRONLY))
	p.mender.in(t, second, nil, "mend", dir("merged/file"))
	p.writer.in(t, second, nil, "close", strconv.Itoa(fd))
	owned(t, dir("merged/file"), second)

	p.refusedAs(t, dir("merged/below"), "in a lower layer of an overlay")
	if _, err := os.Stat(dir("upper/below")); !os.IsNotExist(err) {
		t.Errorf("a file of the lower layer was copied up (%v)", err)
	}
}

// In a pid namespace of its own weir knows processes by their numbers there. It does
// not see those outside, and mends nothing.
func otherPIDs(t *testing.T) {
	lab.Need(t, lab.BPF, lab.FS("ext4"))
	t.Parallel()
	inside := newHand(t, unix.CLONE_NEWPID)
	file := filepath.Join(lab.Disk(t, lab.FS("ext4")).Dir, "file")
	if err := fill(file); err != nil {
		t.Fatal(err)
	}
	g := group(t, "inside")
	var seen inode.File
	inside.in(t, g, &seen, "look", file)
	if here := at(t, file); seen.Inode != here.Inode || seen.Owner != here.Owner {
		t.Errorf("inside %+v,\noutside %+v", seen, here)
	}
	var e *handError
	if err := inside.tryIn(g, nil, "mend", file); !errors.As(err, &e) || !e.refused || !strings.Contains(e.text, "pid namespace") {
		t.Errorf("mend: %v", err)
	}
}
