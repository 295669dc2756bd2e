package attack_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// pointer is the address of a text for the kernel.
func pointer(text string) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(append([]byte(text), 0)))
}

// own makes a directory in a tmpfs of the user's namespace.
func own() (string, error) {
	const dir = "/tmp"
	return dir, errors.Join(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("none", dir, "tmpfs", 0, ""))
}

func init() {
	attacks["many mounts"] = func([]string) error {
		dir, err := own()
		for n := 0; n < 10_000 && err == nil; n++ {
			at := fmt.Sprintf("%s/m%d", dir, n)
			err = errors.Join(os.Mkdir(at, 0o755), unix.Mount("none", at, "tmpfs", 0, ""))
		}
		return err
	}
	attacks["a deep mount"] = func([]string) error {
		dir, err := own()
		if err == nil {
			err = os.Chdir(dir)
		}
		for n := 0; n < 280 && err == nil; n++ {
			name := strings.Repeat("d", 250)
			if err = os.Mkdir(name, 0o755); err == nil {
				err = os.Chdir(name)
			}
		}
		if err != nil {
			return err
		}
		return errors.Join(unix.Mount("none", ".", "tmpfs", 0, ""), os.Chdir("/"))
	}
	attacks["mounts over /proc and /sys"] = func([]string) error {
		if _, err := own(); err != nil {
			return err
		}
		for _, dir := range []string{"/dev", "/sys", "/proc"} {
			if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
				return err
			}
			if err := os.MkdirAll(dir+"/self", 0o755); err != nil {
				return err
			}
		}
		return os.WriteFile("/proc/self/mountinfo", []byte("1 1 8:0 / / rw - ext4 /dev/sda rw\n"), 0o644)
	}
	attacks["an overlay of odd names"] = func([]string) error {
		dir, err := own()
		if err != nil {
			return err
		}
		second := filepath.Join(dir, "second")
		if err := os.Mkdir(second, 0o755); err != nil {
			return err
		}
		for n, name := range []string{"a\nb", "with space", "a - b", "c,d"} {
			lower, at := filepath.Join(dir, name), fmt.Sprintf("%s/o%d", dir, n)
			if err := errors.Join(os.Mkdir(lower, 0o755), os.Mkdir(at, 0o755)); err != nil {
				return err
			}
			if err := unix.Mount("o", at, "overlay", 0, "lowerdir="+strings.ReplaceAll(lower, ",", `\,`)+":"+second); err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENODEV) {
				return fmt.Errorf("%q: %w", name, err)
			}
		}
		return nil
	}
	attacks["an overlay by descriptor"] = func([]string) error {
		dir, err := own()
		if err != nil {
			return err
		}
		lower, err := os.Open("/etc")
		if err != nil {
			return err
		}
		held = append(held, lower)
		at, second := dir+"/o", dir+"/second"
		if err := errors.Join(os.Mkdir(at, 0o755), os.Mkdir(second, 0o755)); err != nil {
			return err
		}
		err = unix.Mount("o", at, "overlay", 0, fmt.Sprintf("lowerdir=/proc/self/fd/%d:%s", lower.Fd(), second))
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENODEV) {
			return nil // not in a user's namespace, on this kernel
		}
		return err
	}
}

// A user can mount anything in a namespace of its own. weir limits a process there on the
// disks of its mounts, as any other process, and believes nothing that it finds there.
func TestNamespacesOfAUser(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Guest, lab.OnceV1, lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	home(t, disk)
	for _, c := range []struct {
		attack string
		flags  uintptr
	}{
		{"many mounts", 0}, {"a deep mount", 0}, {"mounts over /proc and /sys", 0}, {"an overlay of odd names", 0}, {"an overlay by descriptor", 0},
		{"wait", syscall.CLONE_NEWCGROUP}, {"wait", syscall.CLONE_NEWPID}, {"wait", syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC},
	} {
		t.Run(fmt.Sprintf("%s %x", c.attack, c.flags), func(t *testing.T) {
			group, path := made(t, e.Cgroups, "attacked")
			a := start(t, func(cmd *exec.Cmd) {
				cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | c.flags
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}}
				cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}}
				cmd.SysProcAttr.Credential = &syscall.Credential{NoSetGroups: true} // root in there, and the user out here
			}, c.attack)
			if owner, err := os.Stat("/proc/" + a.pid()); err != nil || owner.Sys().(*syscall.Stat_t).Uid != user {
				t.Fatalf("the attacker is user %d: %v", owner.Sys().(*syscall.Stat_t).Uid, err)
			}
			enter(t, group, a.cmd.Process.Pid)
			a.begin(t)
			said := works(t, "set", "pid:"+a.pid(), "--write", "7MB/s", "--hold", "kernel", "--whole-cgroup")
			if rule := ruleOf(t, e.Cgroups, group, disk); !strings.Contains(rule, "7000000") {
				t.Errorf("the disk that it has mounted is not limited: %q\n%.2000s", rule, said)
			}
			if lines := strings.Count(said, "\n"); lines > 40 || len(said) > 20_000 {
				t.Errorf("%d lines, %d bytes", lines, len(said))
			}
			works(t, "show", "--for", "0")
			if said, status := weir(t, "why", "pid:"+a.pid(), "--hold", "kernel"); status > 1 {
				t.Errorf("why: status %d\n%.2000s", status, said)
			}
			works(t, "clear", "cgroup:"+path)
		})
	}
}
