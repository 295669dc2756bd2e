package quota_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// onEach runs a test on XFS and on ext4, mounted with project quotas.
func onEach(t *testing.T, test func(t *testing.T, disk *lab.TestDisk)) {
	for _, kind := range []string{"xfs", "ext4"} {
		t.Run(kind, func(t *testing.T) {
			disk := lab.Disk(t, lab.FS(kind))
			if err := os.Chmod(filepath.Dir(disk.Dir), 0o755); err != nil { // testing's folder is its user's alone
				t.Fatal(err)
			}
			clearAfter(t)
			test(t, disk)
		})
	}
}

// clearAfter lifts all quotas when the test ends. It comes after what mounts a disk.
func clearAfter(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		for _, st := range list(t) {
			if st.By == "weir" {
				mustWeir(t, "quota", "clear", st.Target)
			}
		}
	})
}

// weir runs weir, and returns what it said and whether it ended well.
func weir(args ...string) (said string, err error) {
	var text bytes.Buffer
	cmd := exec.Command("weir", args...)
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	return text.String(), err
}

func mustWeir(t *testing.T, args ...string) string {
	t.Helper()
	said, err := weir(args...)
	if err != nil {
		t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return said
}

// refused runs weir, which must end with a status and say want.
func refused(t *testing.T, status int, want string, args ...string) string {
	t.Helper()
	cmd := exec.Command("weir", args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != status || !strings.Contains(string(out), want) {
		t.Errorf("weir %s: %v, %q; want status %d and %q", strings.Join(args, " "), err, out, status, want)
	}
	return string(out)
}

// A status is one quota in the JSON that weir prints.
type status struct {
	Project         uint32
	Target, By      string
	State           string
	Used            struct{ Bytes, Files uint64 }
	Limit           struct{ Bytes, Files uint64 }
	Mount, FSType   string
	Paths           []string
	SoftBytes, Soft uint64
}

func list(t *testing.T, args ...string) []status {
	t.Helper()
	out, err := exec.Command("weir", append([]string{"quota", "show", "--json"}, args...)...).Output()
	var doc struct{ Quotas []status }
	if err == nil {
		err = json.Unmarshal(out, &doc)
	}
	if err != nil {
		t.Fatalf("weir quota show: %v: %s", err, out)
	}
	return doc.Quotas
}

// of is the quota of a directory.
func of(t *testing.T, dir string) status {
	t.Helper()
	all := list(t, dir)
	if len(all) != 1 {
		t.Fatalf("weir quota show %s: %+v", dir, all)
	}
	return all[0]
}

// subdir makes a directory on a disk that everybody may write to.
func subdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// du adds up what a tree takes, and counts its files and directories.
func du(t *testing.T, dir string) (bytes, files uint64) {
	t.Helper()
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		if !seen[st.Ino] {
			seen[st.Ino] = true
			bytes, files = bytes+uint64(st.Blocks)*512, files+1
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes, files
}

// projects counts the files of a tree by their projects, and the directories whose project
// is inherited.
func projects(t *testing.T, dir string) (of map[uint32]int, inherit int) {
	t.Helper()
	of = map[uint32]int{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		var x struct { // struct fsxattr
			flags, _, _, project, _ uint32
			_                       [8]byte
		}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), 0x801c581f, uintptr(unsafe.Pointer(&x))); errno != 0 {
			return errno
		}
		of[x.project]++
		if x.flags&0x200 != 0 {
			inherit++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return of, inherit
}

// A writer is who a test writes as.
type writer int

const (
	root    writer = iota
	bound          // root without CAP_SYS_RESOURCE, as in a container
	another        // no capability at all
)

// as does something on a thread of its own with a writer's rights.
func as(t *testing.T, who writer, do func() error) error {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		done <- func() error {
			switch who {
			case bound:
				head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
				var caps [2]unix.CapUserData
				if err := unix.Capget(&head, &caps[0]); err != nil {
					return err
				}
				caps[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
				if err := unix.Capset(&head, &caps[0]); err != nil {
					return err
				}
			case another:
				if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, 1000, 1000, 1000); errno != 0 {
					return errno
				}
			}
			return do()
		}()
	}()
	return <-done
}

// fill writes to a file in small pieces until it is refused, or has most bytes.
func fill(path string, most int) (written int, err error) {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	block := make([]byte, 4096)
	for written < most {
		n, err := unix.Write(fd, block)
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, unix.Fsync(fd)
}

// make makes empty files until that is refused, or there are most.
func makeFiles(dir string, most int) (made int, err error) {
	for ; made < most; made++ {
		fd, err := unix.Open(filepath.Join(dir, "f"+itoa(made)), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o666)
		if err != nil {
			return made, err
		}
		if err := unix.Close(fd); err != nil {
			return made, err
		}
	}
	return made, nil
}
