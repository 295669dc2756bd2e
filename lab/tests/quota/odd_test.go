package quota_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// weir marks symbolic links, devices and the like where the kernel can, and leaves them
// alone where it cannot. It opens nothing for which opening has an effect.
func TestOddFiles(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.Guest, lab.V2, lab.NoSystemd)
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		dir := subdir(t, disk.Dir, "data", "below")
		top := filepath.Dir(dir)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, "file\nwith \x01 name")
		must(os.WriteFile(file, []byte("text"), 0o600))
		must(os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
		must(os.Symlink("nowhere", filepath.Join(dir, "broken")))
		must(unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
		must(unix.Mknod(filepath.Join(dir, "watchdog"), unix.S_IFCHR|0o600, int(unix.Mkdev(10, 130))))
		fixed := filepath.Join(dir, "fixed")
		must(os.WriteFile(fixed, []byte("text"), 0o600))
		immutable(t, fixed, true)
		t.Cleanup(func() { immutable(t, fixed, false) })
		// A file that the mounted one hides, and the one that is seen.
		mounted := subdir(t, dir, "mounted")
		must(os.WriteFile(filepath.Join(mounted, "hidden"), []byte("text"), 0o600))
		must(unix.Mount("none", mounted, "tmpfs", 0, ""))
		t.Cleanup(func() { _ = unix.Unmount(mounted, unix.MNT_DETACH) })
		must(os.WriteFile(filepath.Join(mounted, "seen"), []byte("text"), 0o600))
		outside := filepath.Join(disk.Dir, "outside")
		must(os.WriteFile(outside, []byte("text"), 0o600))
		over := filepath.Join(dir, "over")
		must(os.WriteFile(over, []byte("text"), 0o600))
		must(unix.Mount(outside, over, "", unix.MS_BIND, ""))
		t.Cleanup(func() { _ = unix.Unmount(over, unix.MNT_DETACH) })

		said := mustWeir(t, "quota", "set", top, "10MB")
		t.Logf("%s: %s", disk.FS, said)
		st := of(t, top)
		must(unix.Unmount(mounted, 0))
		must(unix.Unmount(over, 0))
		now, _ := projects(t, top)
		t.Logf("%s: %v; %+v", disk.FS, now, st)
		// Three directories; the file, the one below the bind mount, the one below the tmpfs.
		if now[st.Project] < 5 || st.Used.Files < 5 {
			t.Errorf("%d files are in the project", now[st.Project])
		}
		if out, _ := projects(t, outside); out[0] != 1 {
			t.Errorf("a file that is mounted there is in %v", out)
		}
		// Symbolic links, the FIFO and the device.
		if unmarked := 11 - int(st.Used.Files); (unmarked > 0) != strings.Contains(said, "not counted") {
			t.Errorf("%d are not counted, and weir said %s", unmarked, said)
		}
		must(os.Symlink("nowhere", filepath.Join(dir, "later")))
		said = mustWeir(t, "quota", "clear", top)
		if unmarked := 11 - int(st.Used.Files); (unmarked > 0) != strings.Contains(said, "1 file is still in project") {
			t.Errorf("of a link that was made later weir said %s", said)
		}
		immutable(t, fixed, false)
		if now, inherit := projects(t, disk.Dir); len(now) != 1 || now[0] == 0 || inherit != 0 {
			t.Errorf("after clear: %v", now)
		}
	})
}

// immutable has nobody change a file.
func immutable(t *testing.T, path string, is bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		return // gone with its disk
	}
	defer f.Close()
	const flag = 0x10 // FS_IMMUTABLE_FL
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		t.Fatal(err)
	}
	flags &^= flag
	if is {
		flags |= flag
	}
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags); err != nil {
		t.Fatal(err)
	}
}
