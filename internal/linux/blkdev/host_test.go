package blkdev

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// On this host a mount found by its path must be the one that its number names. The
// number is from /proc/self/fdinfo, and statx must give the same one if it gives any.
func TestMountByPathAndByNumber(t *testing.T) {
	r := &resolver{}
	tried := 0
	for _, p := range []string{"/", "/proc/self", "/sys/kernel", "/dev", "/dev/shm", os.TempDir(), "."} {
		f, err := stat(p)
		if err != nil {
			continue
		}
		id := mountID(t, p)
		if f.mountID != id && f.mountID != 0 { // before 5.8
			t.Errorf("%s: statx names mount %d, fdinfo %d", p, f.mountID, id)
		}
		f.mountID = id
		byNumber, err := r.mountOf(p, "", f)
		if errors.Is(err, errNoMount) {
			continue // a chroot
		}
		if err != nil {
			t.Fatal(err)
		}
		f.mountID = 0
		byPath, err := r.mountOf(p, "", f)
		if err != nil || byPath != byNumber {
			t.Errorf("%s: by path %+v (%v), by number %+v", p, byPath, err, byNumber)
		}
		tried++
	}
	if tried == 0 {
		t.Error("no path was compared")
	}
}

// mountID reads mnt_id of an open file, as proc_pid_fdinfo(5) says; it is there since 3.15.
func mountID(t *testing.T, p string) int {
	t.Helper()
	fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("open %s: %v", p, err)
	}
	defer unix.Close(fd)
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(info), "mnt_id:")
	line, _, _ := strings.Cut(rest, "\n")
	id, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("fdinfo of %s: %q: %v", p, info, err)
	}
	return id
}

func TestStatAndOldStatAgree(t *testing.T) {
	for _, p := range []string{"/", "/dev/null"} {
		a, errA := stat(p)
		b, errB := oldStat(p)
		a.mountID = 0
		// statx fills the type alone where only that is asked for.
		a.mode, b.mode = a.mode&0o170000, b.mode&0o170000
		if errA != nil || errB != nil || a != b {
			t.Errorf("%s: statx %+v (%v), stat %+v (%v)", p, a, errA, b, errB)
		}
	}
}

func TestCharacterDevice(t *testing.T) {
	_, err := New("/").Resolve(t.Context(), "/dev/null")
	var not *NotBlockError
	if !errors.As(err, &not) || err.Error() != "resolve /dev/null: is a character device, not a block device" {
		t.Errorf("error %v", err)
	}
	for name, hint := range map[string]bool{"nvme0": true, "nvme-fabrics": false, "sg0": false} {
		if got := strings.Contains(notBlock("/dev/"+name).Error(), "/dev/"+name+"n1"); got != hint {
			t.Errorf("%s: hint given %v, want %v", name, got, hint)
		}
	}
}

func TestWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("some-file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	abs, err := filepath.Abs("some-file")
	if err != nil {
		t.Fatal(err)
	}
	want, errWant := New("/").Resolve(t.Context(), abs)
	for _, spec := range []string{"some-file", "./some-file"} {
		c, err := New("/").Resolve(t.Context(), spec)
		if (err == nil) != (errWant == nil) || numbers(c.Devices) != numbers(want.Devices) {
			t.Errorf("%s: %s (%v), and by its whole path %s (%v)", spec, c, err, want, errWant)
		}
	}
}

func TestPidOf(t *testing.T) {
	for p, pid := range map[string]int{
		"/proc/12/root/etc": 12, "/proc/12/cwd": 12, "/proc/12/fd/3": 0, "/proc/self/root": 0,
		"/proc/-1/root": 0, "/srv/proc/12/root": 0, "/proc/12": 0,
	} {
		if got := pidOf(p); got != pid {
			t.Errorf("pidOf(%q) = %d, want %d", p, got, pid)
		}
	}
}

// A process that has ended, and that its parent has not waited for yet, has no mounts: it is as one that is not there.
func TestMountsOfAnEndedProcess(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	stat := "/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat"
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(stat)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), ") Z ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not end: %s", text)
		}
	}
	if all, err := New("/").Mounts(cmd.Process.Pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%d mounts, %v", len(all), err)
	}
}
