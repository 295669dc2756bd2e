package limits_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-io/weir/lab"
)

// stranger is a user who may do nothing here, and owns nothing.
const stranger = 23456

// weir refuses a user without rights and leaves nothing behind, wherever the user's session
// keeps its files.
func TestARefusedUserLeavesNothing(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.OnceV1, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	device := disk.Number.String() // the directory is not for everybody
	root := e.Cgroups.Blkio
	if e.Cgroups.IOInV2 {
		root = e.Cgroups.Unified
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
			t.Fatal(err)
		}
	}
	group := filepath.Join(root, "refused")
	lab.Cgroup(t, group)
	session, home := sessionOf(t, stranger), sessionOf(t, stranger)
	for name, env := range map[string][]string{
		"without":            nil,
		"with a session":     {"HOME=" + home, "XDG_RUNTIME_DIR=" + session},
		"another's session":  {"HOME=" + home, "XDG_RUNTIME_DIR=" + sessionOf(t, 0)},
		"a session no more":  {"XDG_RUNTIME_DIR=" + session + "/none/weir"},
		"a relative session": {"XDG_RUNTIME_DIR=run"},
	} {
		for _, args := range [][]string{
			{"set", "cgroup:/refused", "--write", "1MB/s", "--on", device},
			{"set", "cgroup:/refused", "--write", "1MB/s", "--on", device, "--hold", "kernel"},
			{"set", "cgroup:/refused", "--write", "1MB/s", "--on", device, "--dry-run"},
			{"clear", "cgroup:/refused"},
			{"run", "--write", "1MB/s", "--on", device, "--", "true"},
			{"run", "--write", "1MB/s", "--on", device, "--dry-run", "--", "true"},
			{"show"}, {"show", "cgroup:/refused", "--for", "0"},
			{"why"}, {"why", "cgroup:/refused", "--on", device}, {"why", disk.Dir, "--write", "1MB/s"},
			{"prove", "--write", "1MB/s"}, {"prove", "--write", "1MB/s", "--on", device}, {"prove", "cgroup:/refused"},
			{"trace", "cgroup:/refused", "--for", "1s"}, {"trace", "--latency", disk.Dir, "--memory", "64MiB"},
			{"demo", "--for", "1s"},
			{"volume", "create", "v", "--size", "64MiB"}, {"volume", "adopt", disk.Dir, "--write", "1MB/s"}, {"volume", "up"}, {"volume", "delete", "v"},
			{"quota", "set", disk.Dir, "1GiB"}, {"quota", "clear", disk.Dir}, {"quota", "show"},
			{"restore"}, {"restore", "--at-boot"}, {"import", "--apply"},
			{"__pacer"}, {"__sweep"},
		} {
			out := asStranger(t, env, args...)
			if made := ownedByStranger(t, session, home); len(made) > 0 {
				t.Errorf("%s: weir %s left %v\n%s", name, strings.Join(args, " "), made, out)
				for _, path := range made {
					_ = os.RemoveAll(path)
				}
			}
		}
	}
}

// In a group that was delegated to a user, weir leaves the limit and nothing else.
func TestADelegateLeavesNothing(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V2, lab.Once, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	device := disk.Number.String()
	above := filepath.Join(e.Cgroups.Unified, "delegated")
	lab.Cgroup(t, above)
	for _, dir := range []string{e.Cgroups.Unified, above} {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
			t.Fatal(err)
		}
	}
	group := filepath.Join(above, "group")
	lab.Cgroup(t, group)
	for _, path := range []string{above, group, filepath.Join(group, "io.max"), filepath.Join(group, "cgroup.procs")} {
		if err := os.Chown(path, stranger, stranger); err != nil {
			t.Fatal(err)
		}
	}
	out := asStranger(t, nil, "set", "cgroup:/delegated/group", "--write", "1MB/s", "--on", device)
	rule, err := os.ReadFile(filepath.Join(group, "io.max"))
	if err != nil || !strings.Contains(string(rule), "wbps=1000000") {
		t.Errorf("the limit of its own group: %q, %v\n%s", rule, err, out)
	}
	if made := ownedByStranger(t); len(made) > 0 {
		t.Errorf("left %v", made)
	}
}

// sessionOf makes a directory that only one user can enter.
func sessionOf(t *testing.T, user int) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "session")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	return dir
}

func asStranger(t *testing.T, env []string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("weir", args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	out, _ := cmd.CombinedOutput() // most is refused
	if cmd.ProcessState == nil {
		t.Fatalf("weir %v did not start", args)
	}
	return out
}

// ownedByStranger lists what the user owns where anybody may make files, but for some.
func ownedByStranger(t *testing.T, but ...string) (found []string) {
	t.Helper()
	suite, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := filepath.Dir(suite)
	for _, top := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run", "/var/lib"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // it has just gone
			}
			if path == tests { // root's alone, and many files
				return fs.SkipDir
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid == stranger && !slices.Contains(but, path) {
				found = append(found, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
