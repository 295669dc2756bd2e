package cgroupfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

func TestIOFindsTheHierarchyWhereverItIsMounted(t *testing.T) {
	for name, c := range map[string]struct {
		mounts  string
		version Version
		mount   string
	}{
		"v2":                     {mountV2, V2, "/sys/fs/cgroup"},
		"v2 at /cgroup2":         {strings.ReplaceAll(mountV2, "/sys/fs/cgroup", "/cgroup2"), V2, "/cgroup2"},
		"v1":                     {mountTmpfs + mountBlkio + mountMemory, V1, "/sys/fs/cgroup/blkio"},
		"v1 at /cgroup":          {strings.ReplaceAll(mountBlkio, "/sys/fs/cgroup/blkio", "/cgroup"), V1, "/cgroup"},
		"v1, all in one mount":   {strings.ReplaceAll(mountBlkio, "rw,blkio", "rw,cpu,blkio,memory"), V1, "/sys/fs/cgroup/blkio"},
		"a space in the name":    {strings.ReplaceAll(mountV2, "/sys/fs/cgroup", `/cgroup\040two\134`), V2, `/cgroup two\`},
		"a tab and a line break": {strings.ReplaceAll(mountV2, "/sys/fs/cgroup", `/c\011\012g`), V2, "/c\t\ng"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := newFS(t, map[string]string{"proc/1/mountinfo": c.mounts, c.mount + "/cgroup.controllers": "io memory\n",
				"sys/fs/cgroup/memory/": ""})
			h, err := fs.IO(0)
			if err != nil {
				t.Fatal(err)
			}
			if h.Version != c.version || h.MountPoint != c.mount {
				t.Errorf("IO = %s at %q, want %s at %q", h.Version, h.MountPoint, c.version, c.mount)
			}
		})
	}
}

func TestHybridHasIOInV1(t *testing.T) {
	fs := newFS(t, map[string]string{"proc/1/mountinfo": mountTmpfs + mountHybrid + mountBlkio + mountMemory + mountNamed,
		"sys/fs/cgroup/unified/cgroup.controllers": "", "sys/fs/cgroup/blkio/": "", "sys/fs/cgroup/memory/": "", "sys/fs/cgroup/systemd/": ""})
	h, err := fs.IO(0)
	if err != nil || h.Version != V1 {
		t.Fatalf("IO = %v, %v; want v1", h, err)
	}
	if u := fs.Unified(); u == nil || u.MountPoint != "/sys/fs/cgroup/unified" {
		t.Errorf("Unified = %+v", u)
	}
	_, err = fs.IO(V2)
	want := "limit disk I/O with cgroup v2: cgroup v1 has the controller on this host (blkio, at /sys/fs/cgroup/blkio)"
	var remedied *fault.Remedied
	if err == nil || err.Error() != want || !fault.IsUnsupported(err) || !errors.As(err, &remedied) || remedied.Remedy.Do != fault.UseV1 {
		t.Errorf("IO(V2) = %v, %+v", err, remedied)
	}
	if len(fs.Hierarchies()) != 4 {
		t.Errorf("%d hierarchies, want 4", len(fs.Hierarchies()))
	}
}

func TestIOSaysWhyThereIsNone(t *testing.T) {
	const cgroups = "#subsys_name\thierarchy\tnum_cgroups\tenabled\nblkio\t0\t1\t1\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  Version
		why   string
	}{
		"nothing mounted":     {map[string]string{"proc/cgroups": cgroups}, 0, "no cgroup hierarchy with io or blkio is mounted"},
		"no controller":       {nil, 0, "the kernel has no blkio controller"},
		"controller disabled": {map[string]string{"proc/cgroups": strings.Replace(cgroups, "1\t1\n", "1\t0\n", 1)}, 0, "the kernel has no blkio controller"},
		"v2 without io": {map[string]string{"proc/cgroups": cgroups, "proc/1/mountinfo": mountV2, "sys/fs/cgroup/cgroup.controllers": "pids\n"}, 0,
			"the io controller is not in /sys/fs/cgroup/cgroup.controllers"},
		"v1 wanted": {map[string]string{"proc/1/mountinfo": mountV2, "sys/fs/cgroup/cgroup.controllers": "io\n"}, V1, "cgroup v2 has the controller"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.files == nil {
				c.files = map[string]string{}
			}
			if c.files["proc/1/mountinfo"] == "" {
				c.files["proc/1/mountinfo"] = "21 1 254:1 / / rw - ext4 /dev/vda1 rw\n"
			}
			_, err := newFS(t, c.files).IO(c.want)
			if !fault.IsUnsupported(err) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("IO = %v; want %q", err, c.why)
			}
		})
	}
}

// In a container whose runtime made no cgroup namespace, mountinfo's root names the
// container's group, and /proc/PID/cgroup spells paths from the host's root.
func TestMountOfAPartOfTheTree(t *testing.T) {
	fs := newFS(t, map[string]string{"proc/1/mountinfo": strings.Replace(mountV2, " / /sys", " /docker/3f2a /sys", 1),
		"sys/fs/cgroup/cgroup.controllers": "io memory\n", "sys/fs/cgroup/inner/io.max": "8:0 rbps=1 wbps=max riops=max wiops=max\n",
		"proc/7/cgroup": "0::/docker/3f2a/inner\n", "proc/8/cgroup": "0::/elsewhere\n", "proc/9/cgroup": "0::/docker/3f2ab\n"})
	h := fs.Unified()
	g, err := fs.OfProcess(h, 7)
	if err != nil {
		t.Fatal(err)
	}
	if g.Path() != "/docker/3f2a/inner" || g.IsRoot() || !strings.HasSuffix(g.Dir(), "/sys/fs/cgroup/inner") {
		t.Errorf("group %s at %s", g.Path(), g.Dir())
	}
	if rules, err := g.Rules(); err != nil || len(rules) != 1 {
		t.Errorf("Rules = %v, %v", rules, err)
	}
	if p := g.Parent(); !p.IsRoot() || p.Path() != "/docker/3f2a" {
		t.Errorf("Parent = %s", p.Path())
	}
	for _, pid := range []int{8, 9} {
		if _, err := fs.OfProcess(h, pid); err == nil || !strings.Contains(err.Error(), "only /docker/3f2a is mounted on /sys/fs/cgroup") {
			t.Errorf("OfProcess(%d): %v; want that it is outside", pid, err)
		}
	}
}

// A container with a cgroup namespace of its own has its host's /sys/fs/cgroup mounted too: the kernel gives that
// mount's root as /../.., and a path below it is that of another group. If there is no other mount, weir says so.
func TestMountOfGroupsOutsideOfTheNamespace(t *testing.T) {
	for _, root := range []string{"/..", "/../.."} {
		outer := strings.NewReplacer(" / /sys/fs/cgroup", " "+root+" /host", "30 23", "40 23").Replace(mountV2)
		files := map[string]string{"proc/1/mountinfo": outer + mountV2, "host/cgroup.controllers": "io\n", "sys/fs/cgroup/cgroup.controllers": "io\n"}
		if all := newFS(t, files).Hierarchies(); len(all) != 1 || all[0].MountPoint != "/sys/fs/cgroup" {
			t.Errorf("%s: %+v", root, all)
		}
		files["proc/1/mountinfo"] = outer
		want := "use cgroup hierarchy /host: its root, " + root + ", is outside of this cgroup namespace; run weir on the host"
		if fs, err := Open(newRoot(t, files)); err == nil || fault.ClassOf(err) != fault.NotPossible || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", root, fs, err)
		}
	}
}

func TestTheMountOfTheWholeTreeIsTaken(t *testing.T) {
	part := strings.NewReplacer(" / /sys/fs/cgroup", " /part /mnt/part", "30 23", "40 23").Replace(mountV2)
	fs := newFS(t, map[string]string{"proc/1/mountinfo": part + mountV2, "mnt/part/cgroup.controllers": "io\n", "sys/fs/cgroup/cgroup.controllers": "io\n"})
	if h := fs.With("io"); h.MountPoint != "/sys/fs/cgroup" {
		t.Errorf("With(io) is at %s", h.MountPoint)
	}
}

// A copy of /sys/fs/cgroup in a chroot or a container's directory is often read-only, and can be
// mounted first.
func TestTheMountThatCanBeWrittenIsTaken(t *testing.T) {
	for _, ro := range []string{"ro,nosuid", "rw,nosuid"} {
		copied := strings.NewReplacer(" / /sys/fs/cgroup", " / /mnt/copy", "30 23", "40 23", "rw,nosuid", ro).Replace(mountV2)
		fs := newFS(t, map[string]string{"proc/1/mountinfo": copied + mountV2, "mnt/copy/cgroup.controllers": "io\n", "sys/fs/cgroup/cgroup.controllers": "io\n"})
		want := map[string]string{"ro,nosuid": "/sys/fs/cgroup", "rw,nosuid": "/mnt/copy"}[ro]
		if h := fs.With("io"); h.MountPoint != want {
			t.Errorf("%s first: With(io) is at %s, want %s", ro, h.MountPoint, want)
		}
	}
}

func TestOpenLeavesOutWhatCannotBeEntered(t *testing.T) {
	fs := newFS(t, map[string]string{"proc/1/mountinfo": mountBlkio + mountV2, "sys/fs/cgroup/cgroup.controllers": "io\n"})
	if n := len(fs.Hierarchies()); n != 1 {
		t.Errorf("%d hierarchies; want the one whose mount point exists", n)
	}
}

func TestOpenSaysWhatIsBroken(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no mountinfo":   {"proc/": ""},
		"not mountinfo":  {"proc/1/mountinfo": "not a mount\n"},
		"no controllers": {"proc/1/mountinfo": mountV2, "sys/fs/cgroup/": ""},
	} {
		root := newRoot(t, files)
		if fs, err := Open(root); err == nil {
			t.Errorf("%s: opened %+v", name, fs.Hierarchies())
		} else if name != "not mountinfo" && !strings.Contains(err.Error(), root) {
			t.Errorf("%s: %v; want the file's name", name, err)
		}
	}
}

func TestAFixtureIsNotWritten(t *testing.T) {
	g := groupOf(t, v2(t, map[string]string{"x/io.max": ""}), "/x")
	var unsupported *fault.Unsupported
	for name, err := range map[string]error{
		"Create": g.Create(), "SetMemoryMax": g.SetMemoryMax(1), "AddProcess": g.AddProcess(1),
		"MayMake": g.MayMake(), "MaySetRule": g.MaySetRule(),
	} {
		if !errors.As(err, &unsupported) {
			t.Errorf("%s of a fixture: %v", name, err)
		}
	}
}

// A refused user of cgroup v1 is not told of delegation, which only v2 has.
func TestTheRightThatIsMissing(t *testing.T) {
	for _, c := range []struct {
		err  error
		of   Version
		want string
	}{
		{unix.EACCES, V1, "run weir as root"}, {unix.EPERM, V1, "run weir as root"},
		{unix.EACCES, V2, "run weir as root, or in a group that root has delegated to you"},
		{fmt.Errorf("open: %w", unix.EPERM), V2, "run weir as root, or in a group that root has delegated to you"},
		{unix.EROFS, V1, "the cgroup file system is mounted read-only"}, {unix.ENODEV, V2, ""},
	} {
		if got := permission(c.err, c.of); got != c.want {
			t.Errorf("%v, %s: %q, want %q", c.err, c.of, got, c.want)
		}
	}
}

func TestReadOnlyMountIsSaid(t *testing.T) {
	for name, mount := range map[string]string{
		"the mount":       strings.Replace(mountV2, "rw,nosuid", "ro,nosuid", 1),
		"the file system": strings.Replace(mountV2, "cgroup2 rw", "cgroup2 ro", 1),
	} {
		fs := newFS(t, map[string]string{"proc/1/mountinfo": mount, "sys/fs/cgroup/cgroup.controllers": "io\n"})
		if err := fs.Unified().Writable(); !fault.IsUnsupported(err) || !strings.Contains(err.Error(), "mounted read-only") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzMountinfo(f *testing.F) {
	for _, s := range []string{mountV2, mountBlkio, mountNamed, mountTmpfs + mountHybrid, "", "x", strings.Replace(mountV2, "/sys/fs/cgroup", `/..\040`, 1),
		strings.Replace(mountV2, "/sys/fs/cgroup", "/../../../../etc", 1)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root := newRoot(t, map[string]string{"proc/1/mountinfo": text, "sys/fs/cgroup/blkio/": "", "sys/fs/cgroup/cgroup.controllers": "io memory\n"})
		fs, err := Open(root)
		if err != nil {
			return
		}
		defer fs.Close()
		for _, h := range fs.Hierarchies() {
			if filepath.IsAbs(h.MountPoint) && h.Writable() == nil {
				t.Errorf("a fixture is writable at %s", h.MountPoint)
			}
		}
	})
}

// A mount that others have made, of one file or of a group that was removed, and a line that
// cannot be read do not keep weir from the hierarchy.
func TestOpenLeavesBrokenMountsOut(t *testing.T) {
	deep := strings.Repeat("/"+strings.Repeat("d", 250), 280)
	fs := newFS(t, map[string]string{
		"proc/1/mountinfo": "40 1 0:26 /x/io.max /srv/file rw - cgroup2 cgroup2 rw\n" +
			"41 1 0:26 /../x//deleted /srv/removed rw - cgroup2 cgroup2 rw\n" +
			"42 1 0:60 / " + deep + " rw - fuse.x x rw\nrw,upperdir=/evil rw\n" +
			"43 1 0:26 / " + deep + " rw - cgroup2 cgroup2 rw\n" + mountV2,
		"srv/file": "", "srv/removed/": "", "sys/fs/cgroup/cgroup.controllers": "io\n",
	})
	h, err := fs.IO(0)
	if err != nil || h.MountPoint != "/sys/fs/cgroup" {
		t.Fatalf("IO = %v, %v", h, err)
	}
}

// A copy of a host can be anybody's, with anything in the place of a file.
func TestOpenWaitsForNoCopy(t *testing.T) {
	root := t.TempDir()
	name := filepath.Join(root, "proc/1/mountinfo")
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), unix.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(root); !errors.Is(err, peek.ErrNotRegular) {
		t.Errorf("%v", err)
	}
	if _, err := blkdev.New(root).Mounts(1); !errors.Is(err, peek.ErrNotRegular) {
		t.Errorf("%v", err)
	}
}
