package quota_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

func itoa(n int) string { return strconv.Itoa(n) }

// beyond is what a file system answers who goes beyond a hard limit.
func beyond(fs string) error {
	if fs == "xfs" {
		return unix.ENOSPC
	}
	return unix.EDQUOT
}

// Ten megabytes for a directory. All writers stop there, within a block, with the file
// system's error; on ext4 those with CAP_SYS_RESOURCE do not.
func TestSize(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.Guest, lab.V2, lab.NoSystemd)
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		dir := subdir(t, disk.Dir, "data")
		said := mustWeir(t, "quota", "set", dir, "10MB")
		if want := map[string]string{"xfs": "ENOSPC, also for root", "ext4": "EDQUOT"}[disk.FS]; !strings.Contains(said, want) || !strings.Contains(said, "10.0 MB") {
			t.Errorf("weir said %q; want %q", said, want)
		}
		const most = 10_000_000
		_, before := du(t, dir)
		for name, who := range map[string]writer{"root": root, "root without CAP_SYS_RESOURCE": bound, "another user": another} {
			t.Run(name, func(t *testing.T) {
				file := filepath.Join(dir, "f")
				var written int
				err := as(t, who, func() (err error) {
					written, err = fill(file, 2*most)
					return err
				})
				used := of(t, dir).Used.Bytes
				t.Logf("%s, %s: %d bytes written, %d used, %v", disk.FS, name, written, used, err)
				if disk.FS == "ext4" && who == root {
					if err != nil || used < 2*most {
						t.Errorf("ext4 has bound a process with CAP_SYS_RESOURCE: %d bytes, %v", used, err)
					}
				} else {
					// The directory has blocks of its own, on ext4 one.
					if !errors.Is(err, beyond(disk.FS)) || used > most || used+4096 <= most-4096 || most-written > 4*4096 {
						t.Errorf("%d bytes were written, %d are used, and the error is %v; want %d and %v", written, used, err, most, beyond(disk.FS))
					}
					bytes, _ := du(t, dir)
					if bytes != used {
						t.Errorf("weir shows %d bytes, and the files take %d", used, bytes)
					}
				}
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			})
		}
		// What is beside it is not bound, nor what is in it once the quota is lifted.
		if n, err := fill(filepath.Join(disk.Dir, "f"), 2*most); err != nil || n < 2*most {
			t.Errorf("beside it %d bytes were written: %v", n, err)
		}
		mustWeir(t, "quota", "clear", dir)
		if n, err := fill(filepath.Join(dir, "f"), 2*most); err != nil || n < 2*most {
			t.Errorf("after it was lifted %d bytes were written: %v", n, err)
		}
		if now, inherit := projects(t, disk.Dir); len(now) != 1 || now[0] == 0 || inherit != 0 {
			t.Errorf("after it was lifted the files are in %v, and %d directories hand theirs on", now, inherit)
		}
		if _, after := du(t, dir); after != before+1 {
			t.Errorf("there were %d files, and are %d", before, after)
		}
		if all := list(t); len(all) != 0 {
			t.Errorf("after it was lifted: %+v", all)
		}
	})
}

// A thousand files: the directory itself is one.
func TestFiles(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.Guest, lab.V2, lab.NoSystemd)
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		dir := subdir(t, disk.Dir, "data")
		mustWeir(t, "quota", "set", dir, "max", "--files", "1000")
		var made int
		err := as(t, another, func() (err error) {
			made, err = makeFiles(dir, 100_000)
			return err
		})
		st := of(t, dir)
		t.Logf("%s: %d files made, %d used, %v", disk.FS, made, st.Used.Files, err)
		if made != 999 || st.Used.Files != 1000 || !errors.Is(err, beyond(disk.FS)) {
			t.Errorf("%d files were made beside the directory, %d are counted, and the error is %v", made, st.Used.Files, err)
		}
		// What is not named stays.
		mustWeir(t, "quota", "set", dir, "1MB")
		if st := of(t, dir); st.Limit.Files != 1000 || st.Limit.Bytes != 999424 {
			t.Errorf("after a second set: %+v", st)
		}
	})
}

// Existing files count. A smaller quota is refused, with the difference, unless it is
// forced.
func TestBelowWhatIsThere(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.Guest, lab.V2, lab.NoSystemd)
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		dir := subdir(t, disk.Dir, "data", "below")
		if _, err := fill(filepath.Join(dir, "f"), 3<<20); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "g")); err != nil {
			t.Fatal(err)
		}
		top := filepath.Dir(dir)
		unix.Sync()
		refused(t, 1, "more than 999 kB", "quota", "set", top, "1MB")
		refused(t, 1, "more than 2", "quota", "set", top, "10MB", "--files", "2")
		if now, inherit := projects(t, top); len(now) != 1 || now[0] == 0 || inherit != 0 {
			t.Errorf("a refused set leaves %v", now)
		}
		if all := list(t); len(all) != 0 {
			t.Errorf("a refused set leaves %+v", all)
		}
		mustWeir(t, "quota", "set", top, "1MB", "--force")
		bytes, files := du(t, top)
		if st := of(t, dir); st.Used.Bytes != bytes || st.Used.Files != files || st.Limit.Bytes != 999424 {
			t.Errorf("forced: %+v; du has %d bytes in %d files", st, bytes, files)
		}
		if err := as(t, another, func() error { _, err := fill(filepath.Join(dir, "h"), 4096); return err }); !errors.Is(err, beyond(disk.FS)) {
			t.Errorf("a directory that is full already takes more: %v", err)
		}
		mustWeir(t, "quota", "set", top, "5MB")
		refused(t, 1, "which is", "quota", "set", top, "2MB")
		if st := of(t, dir); st.Limit.Bytes/4096 != 5_000_000/4096 {
			t.Errorf("after a refused change: %+v", st)
		}
		// It is the same tree, whatever it is called.
		refused(t, 1, "the quota of "+top, "quota", "set", dir, "5MB")
	})
}

// mv and ln across the border of a project, and files of other users.
func TestBorder(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.Guest, lab.V2, lab.NoSystemd)
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		dir := subdir(t, disk.Dir, "data")
		out := filepath.Join(disk.Dir, "f")
		if _, err := fill(out, 1<<20); err != nil {
			t.Fatal(err)
		}
		mustWeir(t, "quota", "set", dir, "10MB")
		if err := os.Link(out, filepath.Join(dir, "f")); !errors.Is(err, unix.EXDEV) {
			t.Errorf("a link into it: %v", err)
		}
		if err := os.Rename(out, filepath.Join(dir, "f")); !errors.Is(err, unix.EXDEV) {
			t.Errorf("a rename into it: %v", err)
		}
		if said, err := exec.Command("mv", out, filepath.Join(dir, "f")).CombinedOutput(); err != nil {
			t.Errorf("mv: %v: %s", err, said)
		}
		if st := of(t, dir); st.Used.Bytes < 1<<20 {
			t.Errorf("after mv: %+v", st)
		}
		// Another quota within it is refused, and one that others have set is left alone.
		within := subdir(t, dir, "within")
		refused(t, 1, "the quota of "+dir, "quota", "set", within, "1MB")
		theirs := subdir(t, disk.Dir, "theirs")
		if said, err := exec.Command("xfs_quota", "-f", "-x", "-D", "/dev/null", "-P", "/dev/null", "-c", "project -s -p "+theirs+" 101", disk.Dir).CombinedOutput(); err != nil {
			t.Fatalf("xfs_quota: %v: %s", err, said)
		}
		if now, _ := projects(t, theirs); now[101] != 1 {
			t.Fatalf("xfs_quota has made it %v", now)
		}
		refused(t, 1, "project 101", "quota", "set", theirs, "1MB")
		refused(t, 1, "project 101", "quota", "clear", theirs)
		free := subdir(t, disk.Dir, "free")
		if err := os.Mkdir(filepath.Join(free, "below"), 0o755); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command("xfs_quota", "-f", "-x", "-D", "/dev/null", "-P", "/dev/null", "-c", "project -s -p "+free+" 102", disk.Dir).CombinedOutput(); err != nil {
			t.Fatalf("xfs_quota: %v: %s", err, said)
		}
		_, command, _ := strings.Cut(refused(t, 1, "project 102", "quota", "set", free, "1MB"), "needs that project: ")
		if out, err := exec.Command("sh", "-ec", command).CombinedOutput(); err != nil || command == "" {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		mustWeir(t, "quota", "set", free, "1MB")
		above := subdir(t, disk.Dir, "above")
		if err := os.Rename(theirs, filepath.Join(above, "theirs")); err != nil {
			t.Fatal(err)
		}
		if said := mustWeir(t, "quota", "set", above, "1MB"); !strings.Contains(said, "other projects") {
			t.Errorf("weir said nothing of what is another's: %s", said)
		}
		mustWeir(t, "quota", "clear", above)
		if now, _ := projects(t, above); now[101] != 1 || now[0] != 1 {
			t.Errorf("after set and clear: %v", now)
		}
	})
}

// The commands that a message names do enable quotas.
func TestOptionIsMissing(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.Guest, lab.V2, lab.NoSystemd, lab.Command("quotaon"))
	commands := regexp.MustCompile(`(umount .*? && mount -o prjquota \S+ [^\s;]+|quotaon -P \S+)`)
	fix := func(t *testing.T, dir, reason string) {
		t.Helper()
		clearAfter(t)
		data := subdir(t, dir, "data")
		said := refused(t, 3, reason, "quota", "set", data, "10MB")
		command := commands.FindString(said)
		if command == "" {
			t.Fatalf("no commands in %q", said)
		}
		if out, err := exec.Command("sh", "-ec", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		mustWeir(t, "quota", "set", data, "10MB")
		if err := as(t, another, func() error { _, err := fill(filepath.Join(data, "f"), 20_000_000); return err }); err == nil {
			t.Errorf("after %s nothing is bound", command)
		}
	}
	again := func(t *testing.T, disk *lab.TestDisk) {
		t.Helper()
		if err := unix.Unmount(disk.Dir, 0); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(disk.Node, disk.Dir, disk.FS, 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("xfs", func(t *testing.T) {
		disk := lab.Disk(t, lab.FS("xfs"))
		again(t, disk)
		part := t.TempDir() // a bind mount of it keeps the file system as it is
		if err := unix.Mount(subdir(t, disk.Dir, "part"), part, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(part, 0) })
		refused(t, 3, "umount "+part+" "+disk.Dir+" && mount -o prjquota "+disk.Node+" "+disk.Dir, "quota", "set", subdir(t, part, "data"), "1MB")
		fix(t, disk.Dir, "without the option prjquota, which XFS takes only when it is mounted")
	})
	t.Run("ext4", func(t *testing.T) {
		disk := lab.Disk(t, lab.FS("ext4"))
		again(t, disk)
		fix(t, disk.Dir, "ext4 counts what projects store there")
	})
	t.Run("ext4 without the features", func(t *testing.T) {
		disk := lab.RawDisk(t)
		if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-O", "^project,^quota", disk.Node).CombinedOutput(); err != nil {
			t.Fatalf("mkfs.ext4: %v: %s", err, out)
		}
		dir := t.TempDir()
		if err := unix.Mount(disk.Node, dir, "ext4", 0, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, 0); err != nil {
				t.Error(err)
			}
		})
		fix(t, dir, "lacks the features quota and project")
	})
	t.Run("other file systems", func(t *testing.T) {
		btrfs := lab.Disk(t, lab.FS("btrfs"))
		refused(t, 3, "btrfs qgroup limit", "quota", "set", subdir(t, btrfs.Dir, "data"), "10MB")
		refused(t, 3, "tmpfs", "quota", "set", "/dev", "10MB")
	})
}

// Writes beyond a soft limit succeed, and show shows it.
func TestSoft(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.Guest, lab.V2, lab.NoSystemd)
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		dir := subdir(t, disk.Dir, "data")
		mustWeir(t, "quota", "set", dir, "4MiB", "--soft", "1MiB", "--soft-files", "5", "--files", "10")
		if err := as(t, another, func() error { _, err := fill(filepath.Join(dir, "f"), 2<<20); return err }); err != nil {
			t.Errorf("above the soft limit: %v", err)
		}
		shown := mustWeir(t, "quota", "show", dir)
		for _, want := range []string{"1.05 MB", "4.19 MB", "5", "10", fmt.Sprintf("(%s)", disk.FS)} {
			if !strings.Contains(shown, want) {
				t.Errorf("weir shows no %s:\n%s", want, shown)
			}
		}
		refused(t, 2, "is above the hard one", "quota", "set", dir, "4MiB", "--soft", "8MiB")
	})
}

// weir finds a moved directory by its project, and a removed one by its number.
func TestMovedAndGone(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.Guest, lab.V2, lab.NoSystemd)
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		dir := subdir(t, disk.Dir, "data", "below")
		top := filepath.Dir(dir)
		mustWeir(t, "quota", "set", top, "10MB")
		project := of(t, top).Project
		moved := top + "2"
		if err := os.Rename(top, moved); err != nil {
			t.Fatal(err)
		}
		refused(t, 1, "the directory was moved", "quota", "clear", top)
		if err := os.Mkdir(top, 0o755); err != nil { // with the old name, and a quota of its own
			t.Fatal(err)
		}
		mustWeir(t, "quota", "set", top, "5MB")
		if st := of(t, top); st.Project == project || of(t, moved).Project != project {
			t.Errorf("%+v has the project of what was moved", st)
		}
		mustWeir(t, "quota", "set", moved, "20MB")
		if st := of(t, moved); st.Target != moved || st.Limit.Bytes/4096 != 20_000_000/4096 || len(list(t)) != 2 {
			t.Errorf("what was moved: %+v", list(t))
		}
		mustWeir(t, "quota", "clear", moved)
		if now, inherit := projects(t, moved); now[0] != 2 || len(now) != 1 || inherit != 0 {
			t.Errorf("after clear: %v", now)
		}
		project = of(t, top).Project
		if err := os.Remove(top); err != nil {
			t.Fatal(err)
		}
		if said := mustWeir(t, "quota", "show"); !strings.Contains(said, fmt.Sprint("weir quota clear ", project)) {
			t.Errorf("of what is gone: %s", said)
		}
		mustWeir(t, "quota", "clear", fmt.Sprint(project))
		if all := list(t); len(all) != 0 {
			t.Errorf("left: %+v", all)
		}
	})
}

// As the documents say, the kernel lets an owner take a file out of its project.
func TestOwnersMayLeave(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.Guest, lab.V2, lab.NoSystemd, lab.Command("chattr"))
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		dir := subdir(t, disk.Dir, "data")
		mustWeir(t, "quota", "set", dir, "10MB")
		file := filepath.Join(dir, "f")
		if err := as(t, another, func() error { _, err := fill(file, 1<<20); return err }); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("chattr", "-p", "0", file)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("chattr: %v: %s", err, out)
		}
		if st := of(t, dir); st.Used.Bytes > 1<<19 {
			t.Errorf("after chattr: %+v", st)
		}
	})
}

// Any user can nest directories by the thousand. A quota can still be set, and all of them
// are in it.
func TestDeep(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.Guest, lab.V2, lab.NoSystemd)
	const deep = 3000
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		dir := subdir(t, disk.Dir, "data")
		at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		for n := range deep {
			name := strings.Repeat("d", 1+n%250)
			if err == nil {
				err = unix.Mkdirat(at, name, 0o755)
			}
			var below int
			if err == nil {
				below, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = unix.Close(at)
			at = below
		}
		_ = unix.Close(at)
		mustWeir(t, "quota", "set", dir, "100MB")
		if st := of(t, dir); st.Used.Files != deep+1 {
			t.Errorf("%d files are in the project, want %d", st.Used.Files, deep+1)
		}
		mustWeir(t, "quota", "clear", dir)
		if all := list(t); len(all) != 0 {
			t.Errorf("left: %+v", all)
		}
	})
}
