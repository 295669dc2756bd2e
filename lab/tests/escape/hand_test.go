package escape_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/uring"
)

// handVariable makes the test binary a writer: its value says how it writes, and which file.
const handVariable = "WEIR_ESCAPE_HAND"

// hands are the ways in which it can.
var hands = map[string]func(file string) error{"direct": writeDirect, "mapped": writeMapped, "uring": writeUring, "pages": writePages}

func TestMain(m *testing.M) {
	how, file, asked := strings.Cut(os.Getenv(handVariable), " ")
	if !asked {
		os.Exit(m.Run())
	}
	if err := hands[how](file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	directDepth = 64
	directBlock = 64 << 10
)

// writeDirect writes 16 MiB past the page cache, 64 requests under way at a time.
func writeDirect(file string) (err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|unix.O_DIRECT, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	ring, err := uring.New(directDepth, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ring.Close()) }()
	block, err := unix.Mmap(-1, 0, directBlock, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for at := 0; at < 16<<20; {
		var requests []uring.Request
		for ; len(requests) < directDepth; at += directBlock {
			requests = append(requests, uring.Request{Opcode: uring.Write, FD: int(f.Fd()), Block: block, Offset: int64(at)})
		}
		if _, err := ring.Do(requests...); err != nil {
			return err
		}
	}
	return nil
}

// writeMapped stores into all pages of a file, through a mapping.
func writeMapped(file string) (err error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	pages, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	for at := 0; at < len(pages); at += os.Getpagesize() {
		pages[at]++
	}
	return errors.Join(unix.Munmap(pages), f.Sync())
}

// writePages writes pages of a file far from each other: a part of all, and each once.
func writePages(file string) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	const step = 7919 // a prime: all pages come once
	page := make([]byte, os.Getpagesize())
	all := st.Size() / int64(len(page))
	for i := range all / pagesPart {
		if _, err := f.WriteAt(page, i*step%all*int64(len(page))); err != nil {
			return err
		}
	}
	return f.Sync()
}

const pagesPart = 4

// writeUring writes over a file through the page cache, 8 requests under way at a time.
func writeUring(file string) (err error) {
	const depth, size = 8, 64 << 10
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	ring, err := uring.New(depth, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ring.Close()) }()
	block := make([]byte, size)
	for at := int64(0); at < st.Size(); {
		var requests []uring.Request
		for ; len(requests) < depth && at < st.Size(); at += size {
			requests = append(requests, uring.Request{Opcode: uring.Write, FD: int(f.Fd()), Block: block, Offset: at})
		}
		if _, err := ring.Do(requests...); err != nil {
			return err
		}
	}
	return f.Sync()
}

// group makes a group that can own writeback.
func group(t *testing.T, name string) cgroupfs.Group {
	t.Helper()
	all, err := cgroupfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	g, err := all.Unified().Root().Child(strings.ReplaceAll(t.Name(), "/", "-") + "-" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Enable("io", "memory"); err != nil {
		t.Fatal(err)
	}
	lab.Cgroup(t, g.Dir())
	return g
}

// in starts a command in a group.
func in(t *testing.T, g cgroupfs.Group, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := g.OpenDir()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: dir}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// ran is how many bytes the commands of run have written: their parent, this process, is in
// no group of theirs.
var ran uint64

// run runs a command in a group to its end.
func run(t *testing.T, g cgroupfs.Group, args ...string) {
	t.Helper()
	cmd := in(t, g, args...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s in %s: %v", strings.Join(args, " "), g.Path(), err)
	}
	ran += uint64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Oublock) * 512
}

// write has dd write MiBs of a file in a group.
func write(t *testing.T, g cgroupfs.Group, file string, mib int, more ...string) {
	t.Helper()
	run(t, g, append([]string{"dd", "if=/dev/zero", "of=" + file, "bs=1M", fmt.Sprintf("count=%d", mib)}, more...)...)
}

// remove removes a group, once its last process has left it.
func remove(t *testing.T, g cgroupfs.Group) {
	t.Helper()
	lab.Await(t, 30*time.Second, "group "+g.Path()+" to be empty", func() bool { return g.Remove() == nil })
}

// foreign makes a file of so many MiB that is another group's, in the page cache, and on the
// disk: one that is alive, one that was removed, or the root group.
func foreign(t *testing.T, dir, owner string, mib int) (file string) {
	t.Helper()
	file = filepath.Join(dir, owner)
	other := group(t, owner)
	if owner == "root" {
		other = other.Hierarchy().Root()
	}
	write(t, other, file, mib, "conv=fsync")
	if owner == "removed" {
		remove(t, other)
	}
	return file
}
