package why

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/targets"
)

// fake answers for the kernel, and keeps what it was asked.
type fake struct {
	files []inode.File
	pids  []int
	paths []string
	times int
}

func (k *fake) OfPaths(_ context.Context, paths []string) ([]inode.File, error) {
	k.paths = append(k.paths, paths...)
	return k.files, nil
}

func (k *fake) OfProcesses(_ context.Context, pids []int) ([]inode.File, error) {
	k.times++
	k.pids = pids
	return k.files, nil
}

func (k *fake) sources() Sources {
	return Sources{Root: "/", Owners: func() (Owners, error) { return k, nil }}
}

// onDisk are facts with a target that runs, on a file system with the number of vda.
func onDisk() Facts {
	f := good()
	f.Group.Processes = []int{7, 8}
	m := &blkdev.Mount{FSType: "ext4", Point: "/data", Number: vda.Number}
	f.Places[0].FS, f.Places[0].Chain.Layers = m, []blkdev.Layer{{Mount: m}}
	return f
}

func openFile(path string, n uint64, flags int) inode.File {
	return inode.File{Path: path, PID: 7, Inode: n, Device: vda.Number, OpenFlags: flags, Owner: inode.Owner{State: inode.Owned}}
}

// Of a target's open files those count that are written to through the page cache on
// the place, each once; the kernel is asked once for all places.
func TestOwnersOfATarget(t *testing.T) {
	elsewhere := openFile("/other/f", 1, unix.O_RDWR)
	elsewhere.Device = blkdev.Number{Major: 0, Minor: 99}
	k := &fake{files: []inode.File{
		openFile("/data/b", 1, unix.O_WRONLY), openFile("/data/a", 2, unix.O_RDWR), openFile("/data/a", 2, unix.O_RDWR),
		openFile("/data/read", 3, unix.O_RDONLY), openFile("/data/direct", 4, unix.O_RDWR|unix.O_DIRECT), elsewhere,
	}}
	f := onDisk()
	f.Places = append(f.Places, f.Places[0])
	if err := f.readOwners(t.Context(), k.sources(), Question{Target: &targets.Target{}}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range f.Places[1].Files {
		names = append(names, file.Path)
	}
	if !slices.Equal(names, []string{"/data/a", "/data/b"}) || !slices.Equal(k.pids, []int{7, 8}) || k.times != 1 {
		t.Errorf("files %v, asked %d times of %v", names, k.times, k.pids)
	}
	if err := f.readOwners(t.Context(), k.sources(), Question{Target: &targets.Target{PID: 8}}); err != nil || !slices.Equal(k.pids, []int{8}) {
		t.Errorf("for one process, %v were asked of (%v)", k.pids, err)
	}
}

// A file that was named is asked for alone, where a link to it leads.
func TestOwnersOfANamedFile(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	f := onDisk()
	f.Group.ToMake, f.Places[0].File = true, link
	k := &fake{files: []inode.File{openFile(file, 1, 0)}}
	if err := f.readOwners(t.Context(), k.sources(), Question{}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.paths, []string{file}) || k.times != 0 || len(f.Foreign()) != 1 {
		t.Errorf("asked for %v and %d times of processes; foreign: %v", k.paths, k.times, f.Foreign())
	}
}

// What cannot be read is not known, which for a file that was named cannot be passed over.
func TestOwnersNotKnown(t *testing.T) {
	untold := openFile("/data/f", 1, unix.O_RDWR)
	untold.Owner.State = inode.Unknown
	cannot := func() (Owners, error) {
		return nil, &bpf.Unavailable{Reason: "no BPF", Remedy: "boot another kernel"}
	}
	for _, s := range []Sources{{Root: "/"}, {Root: "/", Owners: cannot}, (&fake{files: []inode.File{untold}}).sources()} {
		for _, named := range []bool{false, true} {
			f := onDisk()
			if named {
				f.Places[0].File = os.Args[0]
			}
			if err := f.readOwners(t.Context(), s, Question{}); err != nil {
				t.Fatal(err)
			}
			r := Judge(f)
			want := map[bool]Held{false: AtDevice, true: Unknown}[named]
			found, ok := r.Find("inode-not-known")
			if !ok || len(r.Findings) != 1 || buffered(r) != want || (r.Worst() == Unknown) != named {
				t.Errorf("named %t: %+v", named, r)
			}
			if s.Owners != nil && f.Places[0].OwnersErr.Error() == "read the owners of inodes: no BPF; boot another kernel" && found.Fixes[0].Text != "boot another kernel" {
				t.Errorf("fixes: %+v", found.Fixes)
			}
		}
	}
}

func TestForeignNamesTheCommand(t *testing.T) {
	f := good()
	f.Places[0].Files = owned(inode.Group{Path: "/y"}, inode.Group{Name: "z", Dead: true})
	found, _ := Judge(f).Find("foreign-inode")
	if len(found.Fixes) == 0 || !slices.Equal(found.Fixes[0].Lines, []string{"weir why cgroup:/x --on /data --mend"}) {
		t.Errorf("%+v", found.Fixes)
	}
	want := []Evidence{{"/data/0", "inode 0 of 0:0, charged to cgroup /y"}, {"/data/1", "inode 1 of 0:0, charged to a removed group (.../z)"}}
	if !slices.Equal(found.Evidence, want) {
		t.Errorf("%+v", found.Evidence)
	}
	f.Places[0].File, f.Places[0].Files = "/data/it's", f.Places[0].Files[:1]
	f.Places[0].Files[0].Path = "/data/\x1b[2J"
	found, _ = Judge(f).Find("foreign-inode")
	if got := found.Fixes[0].Lines[0]; got != `weir why cgroup:/x --on '/data/it'\''s' --mend` {
		t.Error(got)
	}
	if got := found.Evidence[0].File; got != `"/data/\x1b[2J"` {
		t.Error(got)
	}
}
