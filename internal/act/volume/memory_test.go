package volume

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/linux/loopdev"
	"github.com/weir-io/weir/internal/state"
)

// loopMajor is one that no real device has, because weir looks for mounts of a volume's device in
// the /proc of the machine that the test runs on.
const loopMajor = 4000

// A memory stands in for a machine: it has loop devices and mounts, shows them as sysfs and
// /proc/PID/mountinfo do, and keeps rules and files.
type memory struct {
	t      *testing.T
	host   cgrouptest.Host
	bin    string // of its programs
	dir    string // of the machine's own files
	loops  map[int]*loop
	others []string // lines of mountinfo that are no volume's
	ids    int
	// refuse, if it is not nil, may refuse what a volume needs: "add", "attach", "mount" …
	refuse func(what string) error
	steps  []hold.Step
	seen   map[string]bool // programs that ran and are a step
	follow *follower       // notes what happens beside the calls; nil: nobody does
}

type loop struct {
	file  string
	inode uint64
	at    string // where it is mounted
	id    int    // of the mount
	open  bool
}

// newStore makes the store of a machine with another disk, vdb, which is mounted at "disk".
func newStore(t *testing.T, version cgroupfs.Version) (Store, *memory) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: weir accepts only files and directories that belong to root")
	}
	dir, err := filepath.EvalSymlinks(quick(t))
	must(t, err)
	files := map[string]string{"proc/swaps": "Filename Type Size Used Priority\n"}
	line := "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	if version == cgroupfs.V1 {
		line = "30 23 0:26 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
		for _, rate := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
			files[cgrouptest.V1Dir+"/blkio.throttle."+rate+"_device"] = ""
		}
	}
	m := &memory{t: t, dir: dir, loops: map[int]*loop{}, ids: 100, seen: map[string]bool{}}
	m.others = []string{line, "23 1 254:0 / / rw - ext4 /dev/vda rw\n", "31 23 254:16 / " + filepath.Join(dir, "disk") + " rw - xfs /dev/vdb rw\n"}
	files["proc/1/mountinfo"] = line
	m.host = cgrouptest.New(t, version, files)
	must(t, m.host.FS.Rehearse(m.rule))
	m.device("vda", blkdev.Number{Major: 254})
	m.device("vdb", blkdev.Number{Major: 254, Minor: 16})
	m.show()
	must(t, os.MkdirAll(filepath.Join(dir, "disk"), 0o755))
	m.programs("mkfs.ext4", "mkfs.xfs", "resize2fs", "xfs_growfs")
	return Store{Dir: filepath.Join(dir, "lib/weir/volumes"), State: state.At(m.host.Root), Holder: hold.Holder{State: state.At(m.host.Root)},
		Devices: blkdev.New(m.host.Root), Kernel: kernel.New(m.host.Root), IO: m.host.IO, WhyNone: errors.New("this host limits nothing"),
		Undo: func() error { return nil }, standIn: m}, m
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

// device gives the machine a disk, with bounds on its dirty pages.
func (m *memory) device(name string, number blkdev.Number) {
	m.t.Helper()
	m.host.Write("sys/devices/"+name+"/dev", number.String()+"\n")
	m.host.Write("sys/devices/"+name+"/uevent", fmt.Sprintf("MAJOR=%d\nMINOR=%d\nDEVNAME=%s\nDEVTYPE=disk\n", number.Major, number.Minor, name))
	m.host.Write("sys/devices/"+name+"/size", "8388608\n")
	for _, link := range []string{"sys/dev/block/" + number.String(), "sys/class/block/" + name} {
		path := filepath.Join(m.host.Root, link)
		must(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(m.t, os.Symlink(strings.Repeat("../", strings.Count(link, "/")-1)+"devices/"+name, path))
	}
	for file, text := range map[string]string{"max_ratio": "100", "max_ratio_fine": "1000000", "max_bytes": "0", "strict_limit": "0"} {
		m.host.Write("sys/class/bdi/"+number.String()+"/"+file, text+"\n")
		must(m.t, os.Chtimes(filepath.Join(m.host.Root, "sys/class/bdi", number.String(), file), asMade, asMade))
	}
}

// asMade is when files of sysfs were written last that nobody has written to.
var asMade = time.Unix(1, 0)

func (m *memory) bdi(number blkdev.Number, file string) string {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.host.Root, "sys/class/bdi", number.String(), file))
	must(m.t, err)
	return strings.TrimSpace(string(text))
}

// programs are those that make file systems: they note how they were called.
func (m *memory) programs(names ...string) {
	m.t.Helper()
	bin := m.t.TempDir() // programs may not run from memory
	for _, name := range names {
		must(m.t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nif test -e '"+bin+"/fail'; then echo no luck; exit 1; fi\necho \"${0##*/} $*\" >>'"+bin+"/log'\n"), 0o755))
	}
	m.bin = bin
	m.t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

func (m *memory) ran() []string {
	text, err := os.ReadFile(filepath.Join(m.bin, "log"))
	if err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool { return l == "" })
}

// show writes what is mounted.
func (m *memory) show() {
	m.t.Helper()
	text := strings.Join(m.others, "")
	for n, l := range m.loops {
		if l.at != "" {
			text += fmt.Sprintf("%d 23 %d:%d / %s rw - ext4 /dev/loop%d rw\n", l.id, loopMajor, n, l.at, n)
		}
	}
	m.host.Write("proc/1/mountinfo", text)
}

// rule keeps a line as the files of blkio do.
func (m *memory) rule(file, line string) error {
	if err := m.may("rule"); err != nil {
		return err
	}
	m.note(hold.Step{File: file, Line: line})
	device, rate, _ := strings.Cut(line, " ")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(l string) bool { return l == "" || strings.HasPrefix(l, device+" ") })
	if rate != "0" {
		lines = append(lines, line)
	}
	return os.WriteFile(file, []byte(strings.Join(append(lines, ""), "\n")), 0o644)
}

// rules are the lines of the root group of v1.
func (m *memory) rules(rate string) string {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.host.Root, cgrouptest.V1Dir, "blkio.throttle."+rate+"_device"))
	must(m.t, err)
	return strings.TrimSpace(string(text))
}

func (m *memory) may(what string) error {
	m.look()
	if m.refuse == nil {
		return nil
	}
	return m.refuse(what)
}

func (m *memory) call(what, format string, args ...any) error {
	if err := m.may(what); err != nil {
		return err
	}
	m.note(called(format, args...))
	return nil
}

func (m *memory) note(s hold.Step) { m.look(); m.steps = append(m.steps, s) }

// look has a follower note what has happened up to a call.
func (m *memory) look() {
	if m.follow != nil {
		m.follow.compare()
	}
}

func (m *memory) exists(n int) bool { return m.loops[n] != nil }

func (m *memory) number(n int) (blkdev.Number, error) {
	if m.loops[n] == nil {
		return blkdev.Number{}, os.ErrNotExist
	}
	return m.numberOfNew(n), nil
}

func (m *memory) numberOfNew(n int) blkdev.Number {
	return blkdev.Number{Major: loopMajor, Minor: uint32(n)}
}

func (m *memory) loopOf(dev blkdev.Number) (int, bool) {
	return int(dev.Minor), dev.Major == loopMajor && m.loops[int(dev.Minor)] != nil
}

func (m *memory) file(n int) (string, error)  { return m.loops[n].file, nil }
func (m *memory) inode(n int) (uint64, error) { return m.loops[n].inode, nil }

func (m *memory) ofFile(image *os.File) (int, bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(image.Fd()), &st); err != nil {
		return 0, false, err
	}
	for n, l := range m.loops {
		if l.file != "" && l.inode == st.Ino {
			return n, true, nil
		}
	}
	return 0, false, nil
}

func (m *memory) add(n int) error {
	if m.loops[n] != nil {
		return unix.EEXIST
	}
	if err := m.call("add", "make %s", loopdev.Node(n)); err != nil {
		return err
	}
	m.loops[n] = &loop{}
	m.device(fmt.Sprintf("loop%d", n), m.numberOfNew(n))
	return nil
}

// held is a device that is open.
type held struct {
	*loop
	m *memory
}

func (h held) Close() error {
	h.open = false
	return h.m.drop(h.loop)
}

// drop lets go of the file of a device that nobody uses.
func (m *memory) drop(l *loop) error {
	if l.at == "" && !l.open {
		l.file = ""
	}
	return nil
}

func (m *memory) attach(n int, image *os.File) (io.Closer, error) {
	if err := m.call("attach", "attach %s to %s", image.Name(), loopdev.Node(n)); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(image.Fd()), &st); err != nil {
		return nil, err
	}
	l := m.loops[n]
	l.file, l.inode, l.open = image.Name(), st.Ino, true
	return held{l, m}, nil
}

func (m *memory) keepSpace(n int) error {
	return m.call("keep", "have %s refuse discards", loopdev.Node(n))
}

func (m *memory) grow(n int) error {
	return m.call("grow", "tell %s of the size of %s", loopdev.Node(n), m.loops[n].file)
}

func (m *memory) detach(n int) error {
	if err := m.call("detach", "detach %s", loopdev.Node(n)); err != nil {
		return err
	}
	return m.drop(m.loops[n])
}

func (m *memory) remove(n int) error {
	l := m.loops[n]
	if l == nil {
		return nil
	}
	if l.at != "" || l.file != "" {
		return unix.EBUSY
	}
	if err := m.call("remove", "remove %s", loopdev.Node(n)); err != nil {
		return err
	}
	delete(m.loops, n)
	for _, path := range []string{"sys/dev/block/" + m.numberOfNew(n).String(), fmt.Sprintf("sys/class/block/loop%d", n), "sys/class/bdi/" + m.numberOfNew(n).String(), fmt.Sprintf("sys/devices/loop%d", n)} {
		must(m.t, os.RemoveAll(filepath.Join(m.host.Root, path)))
	}
	return nil
}

func (m *memory) mount(n int, v Volume) error {
	if err := m.call("mount", "mount %s at %s (%s, nodev, nosuid)", loopdev.Node(n), v.Mount, v.FS); err != nil {
		return err
	}
	m.ids++
	m.loops[n].at, m.loops[n].id = v.Mount, m.ids
	m.show()
	return nil
}

func (m *memory) unmount(mount blkdev.Mount) error {
	l := m.loops[int(mount.Number.Minor)]
	if err := m.call("unmount", "unmount %s", mount.Point); err != nil {
		return err
	}
	l.at = ""
	m.show()
	return m.drop(l)
}

// left is what remains of a volume on the machine; empty: nothing.
func (m *memory) left(s Store, name string) (all []string) {
	m.t.Helper()
	for n := range m.loops {
		all = append(all, loopdev.Node(n))
	}
	for _, path := range []string{filepath.Join(s.Dir, name), filepath.Join(s.Dir, name+".img"), s.path(name, ready), s.path(name, making), s.path(name, deleting), s.path(name, draft)} {
		if _, err := os.Lstat(path); err == nil {
			all = append(all, path)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(m.host.Root, "run/weir")); err == nil {
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), loopKind) {
				all = append(all, e.Name())
			}
		}
	}
	return all
}

// spec is a small volume with a limit.
func spec(what string) Spec {
	return Spec{What: what, Size: 16 << 20, FS: "ext4", Limit: limit.Limit{WBPS: limit.PerSecond(10e6), RIOPS: limit.PerSecond(500)}}
}
