package blkdev

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// twoDisks has / on vda2 and /data on sdb.
func twoDisks(tr tree, mounts ...string) {
	btrfsOnTwo(tr)
	vda(tr)
	tr.dir("data/up")
	tr.dir("sysroot/ostree/repo/objects")
	tr.mounts("1", append([]string{rootOnVda2, "21 20 8:16 / /data rw - xfs /dev/sdb rw", "22 20 254:1 / /sysroot rw - xfs /dev/vda1 rw",
		"23 20 0:40 / /run rw - tmpfs tmpfs rw"}, mounts...)...)
}

func TestOverlayOptions(t *testing.T) {
	long := strings.Repeat(",lowerdir+=/l/"+strings.Repeat("x", 200), 400)
	for name, c := range map[string]struct{ options, want, reason string }{
		"a space that is not escaped":    {"rw,lowerdir=/l/my layer,upperdir=/data/up,workdir=/data/w", "8:16", ""},
		"a space and a dash":             {"rw,lowerdir=/l - x,upperdir=/data/up,workdir=/data/w", "8:16", ""},
		"a comma with a backslash":       {`rw,lowerdir=/l\,upperdir=/x,upperdir=/data/up`, "8:16", ""},
		"400 layers":                     {"rw" + long + ",upperdir=/data/up", "8:16", ""},
		"composefs":                      {"ro,lowerdir+=/run/meta,datadir+=/data", "8:16", ""},
		"composefs in one option":        {"ro,lowerdir=/run/meta::/data,redirect_dir=on,metacopy=on", "8:16", ""},
		"a data layer over metadata":     {"ro,lowerdir=/run/meta:/::/data", "8:16", ""},
		"two data layers":                {"ro,lowerdir=/run/meta::/data::/", "8:16", ""},
		"a writable one with data layer": {"rw,lowerdir=/run/meta::/,upperdir=/data/up,workdir=/data/w", "8:16", ""},
		"the topmost layer is in memory": {"ro,lowerdir=/run/config:/data:/", "8:16", ""},
		"all layers are in memory":       {"ro,lowerdir=/run/a:/run/b", "", "the read only, lower directory of the overlay is /run/a, and tmpfs keeps its files in memory"},
		"by descriptor":                  {"ro,lowerdir=/proc/self/fd/8:/data", "", "/proc/self/fd/8, which was an open file or a directory of the process that mounted it"},
		"by another's descriptor":        {"ro,lowerdir=/proc/4711/fd/8:/data", "", "/proc/4711/fd/8, which was"},
		"by descriptor below /dev":       {"rw,lowerdir=/l,upperdir=/dev/fd/8", "", "/dev/fd/8, which was"},
		"below a descriptor":             {"ro,lowerdir=/run/meta,datadir+=/proc/self/fd/8/objects", "", "the read only, data directory of the overlay is /proc/self/fd/8/objects, which"},
		"by the mounter's own directory": {"rw,lowerdir=/l,upperdir=/proc/self/cwd/up", "", "/proc/self/cwd/up, which was"},
		"only a lower one by descriptor": {"rw,lowerdir=/proc/self/fd/8,upperdir=/data/up", "8:16", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTree(t)
			for _, dir := range []string{"run/meta", "run/config", "run/a", "run/b", "proc/self/cwd/up", "proc/self/fd/8/objects", "proc/4711/fd/8", "dev/fd/8"} {
				tr.dir(dir)
			}
			twoDisks(tr, "40 20 0:50 / /m rw - overlay overlay "+c.options)
			chain, err := tr.fs().Resolve(t.Context(), "/m")
			if c.reason == "" {
				if err != nil || numbers(chain.Devices) != c.want {
					t.Errorf("devices %s, want %s (%v)\n%s", numbers(chain.Devices), c.want, err, chain)
				}
				return
			}
			var none *NoBlockDeviceError
			if !errors.As(err, &none) || !strings.Contains(none.Reason, c.reason) || len(chain.Devices) > 0 {
				t.Errorf("%v, devices %s; want %q", err, numbers(chain.Devices), c.reason)
			}
		})
	}
}

// An image file that was mounted by descriptor means another file here.
func TestErofsByDescriptor(t *testing.T) {
	tr := newTree(t)
	tr.dir("proc/self/fd/8")
	twoDisks(tr, "40 20 0:50 / /m ro - erofs /proc/self/fd/8 ro")
	if c, err := tr.fs().Resolve(t.Context(), "/m"); err == nil || !strings.Contains(err.Error(), "erofs is on /proc/self/fd/8, which was an open file") {
		t.Errorf("%s, %v", c, err)
	}
}

// A layer that this process cannot see is found where process 1 sees it: weir may be in a container.
func TestALayerOfAnotherMountNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to have a mount namespace of its own")
	}
	above := t.TempDir()
	dir := filepath.Join(above, "upper")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	want, err := New("/").Resolve(t.Context(), dir)
	if err != nil {
		t.Skipf("it is on no disk: %v", err)
	}
	other := exec.Command("sleep", "60") // it goes on to see the directory
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	if got := through(other.Process.Pid, filepath.Join(above, "gone")); got != "" {
		t.Errorf("a directory that is nowhere is %s", got)
	}
	done := make(chan error)
	go func() {
		defer close(done)
		runtime.LockOSThread() // it ends with the goroutine, and its namespace with it
		if err := errors.Join(unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("tmpfs", above, "tmpfs", 0, "")); err != nil {
			done <- err
			return
		}
		r := &resolver{fs: New("/"), init: other.Process.Pid}
		if r.there(dir) {
			done <- errors.New("the directory is still seen")
			return
		}
		got, err := r.onLayer(t.Context(), layer{"upper directory", dir}, maxDepth)
		if err == nil && (len(got.Devices) != 1 || got.Devices[0].Number != want.Devices[0].Number || got.of.dir != dir) {
			err = fmt.Errorf("%+v, want %+v", got, want)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
