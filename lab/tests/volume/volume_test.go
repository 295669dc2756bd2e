package volume_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// weirSays runs weir and returns what it said; it fails the test if weir does.
func weirSays(t *testing.T, args ...string) string {
	t.Helper()
	said, err := try(args...)
	if err != nil {
		t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return said
}

func try(args ...string) (said string, err error) {
	var text bytes.Buffer
	cmd := exec.Command("weir", args...)
	cmd.Stderr, cmd.Stdout = &text, &text
	err = cmd.Run()
	return text.String(), err
}

// refused runs weir, which must fail and say want.
func refused(t *testing.T, want string, args ...string) {
	t.Helper()
	said, err := try(args...)
	if err == nil || !strings.Contains(said, want) {
		t.Errorf("weir %s: %v, %q; want an error with %q", strings.Join(args, " "), err, said, want)
	}
}

// A volume is one in the JSON that weir prints.
type volume struct {
	Name, Mount, Image, FS, Device, Error string
	Limit                                 limit.Limit
	Adopted, Up                           bool
	Number                                blkdev.Number
	Size                                  int64 `json:"size_bytes"`
}

func volumes(t *testing.T) []volume {
	t.Helper()
	out, err := exec.Command("weir", "volume", "list", "--json").Output()
	if err != nil {
		t.Fatalf("weir volume list: %v", err)
	}
	var doc struct{ Volumes []volume }
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Volumes
}

func find(t *testing.T, name string) volume {
	t.Helper()
	for _, v := range volumes(t) {
		if v.Name == name || v.Mount == name {
			return v
		}
	}
	t.Fatalf("there is no volume %s", name)
	return volume{}
}

// room is a directory on a file system that volumes' files can be made on.
func room(t *testing.T) string {
	t.Helper()
	if lab.Here(t).Lane == "native" {
		return t.TempDir()
	}
	return lab.Disk(t, lab.FS("ext4")).Dir
}

// create makes a volume that lives as long as the test.
func create(t *testing.T, name, on string, args ...string) volume {
	t.Helper()
	weirSays(t, append([]string{"volume", "create", name, "--on", on}, args...)...)
	t.Cleanup(func() {
		if slices.ContainsFunc(volumes(t), func(v volume) bool { return v.Name == name }) {
			remove(t, name)
		}
	})
	return find(t, name)
}

func remove(t *testing.T, name string) {
	t.Helper()
	weirSays(t, "volume", "down", name)
	weirSays(t, "volume", "delete", name)
}

// unique names a volume so that no other test's is meant.
func unique(t *testing.T) string {
	return fmt.Sprintf("test-%d-%s", os.Getpid(), strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())))
}

// Files on a volume survive down and up, and are gone after delete.
func TestLife(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Loop, lab.FS("ext4"))
	for _, fs := range []struct{ name, size, larger string }{{"ext4", "32MiB", "64MiB"}, {"xfs", "320MiB", "340MiB"}} {
		t.Run(fs.name, func(t *testing.T) {
			lab.Need(t, lab.FS(fs.name))
			on, name := room(t), unique(t)
			v := create(t, name, on, "--size", fs.size, "--fs", fs.name, "--write", "10MB/s")
			if !v.Up || v.FS != fs.name || v.Limit.Get(limit.WBPS) != limit.PerSecond(10e6) || filepath.Dir(v.Image) != on {
				t.Errorf("made: %+v", v)
			}
			file := filepath.Join(v.Mount, "f")
			if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, "it exists already", "volume", "create", name, "--size", fs.size, "--on", on)
			refused(t, "mounted at "+v.Mount, "volume", "delete", name)
			refused(t, "cannot shrink", "volume", "resize", name, "--size", "16MiB")
			open, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			refused(t, fmt.Sprintf("process %d", os.Getpid()), "volume", "down", name)
			if err := open.Close(); err != nil {
				t.Fatal(err)
			}
			grows(t, v, fs.larger)
			weirSays(t, "volume", "down", name)
			if v := find(t, name); v.Up {
				t.Errorf("down: %+v", v)
			}
			nothing(t, v)
			weirSays(t, "volume", "up", name)
			if text, err := os.ReadFile(file); string(text) != "kept" {
				t.Errorf("the file has %q, %v", text, err)
			}
			allTaken(t, v.Image)
			remove(t, name)
			nothing(t, v)
			for _, path := range []string{v.Image, v.Mount} {
				if _, err := os.Lstat(path); err == nil {
					t.Errorf("%s is left", path)
				}
			}
		})
	}
}

// grows makes a volume larger, where this root may.
func grows(t *testing.T, v volume, size string) {
	t.Helper()
	before := free(t, v.Mount)
	said, err := try("volume", "resize", v.Name, "--size", size)
	if strings.Contains(said, "CAP_SYS_RESOURCE") && lab.Here(t).Lane == "native" {
		if now := find(t, v.Name); now.Size != v.Size {
			t.Errorf("a refused resize has made it %d bytes", now.Size)
		}
		return
	}
	if err != nil {
		t.Fatalf("weir volume resize: %v\n%s", err, said)
	}
	if got := free(t, v.Mount); got < before+10<<20 {
		t.Errorf("%d bytes free before it was larger, %d after", before, got)
	}
}

// nothing checks that a volume has no device any more.
func nothing(t *testing.T, v volume) {
	t.Helper()
	if _, err := os.Stat("/sys/dev/block/" + v.Number.String()); err == nil {
		t.Errorf("%s is left", v.Device)
	}
}

// interrupt is what Ctrl-C sends.
const interrupt = unix.SIGINT

func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// A process that has a volume mounted in its own namespace, as a container has, keeps the
// volume in use, and weir names it.
func TestAnothersMountIsFound(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Loop, lab.FS("ext4"))
	v := create(t, unique(t), room(t), "--size", "16MiB")
	holder := exec.Command("sleep", "600")
	holder.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // mounts that follow nobody's
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill() })
	// The kernel closes what the start waits for before it changes the name (begin_new_exec in fs/exec.c).
	lab.Await(t, 10*time.Second, "the program's name", func() bool {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", holder.Process.Pid))
		return err == nil && string(name) == "sleep\n"
	})
	refused(t, fmt.Sprintf("process %d (sleep), which has it mounted at %s", holder.Process.Pid, v.Mount), "volume", "down", v.Name)
	if v := find(t, v.Name); !v.Up {
		t.Errorf("refused, and %+v", v)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // killed
}
