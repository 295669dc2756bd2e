package quota

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// The kernel's structs have these sizes (include/uapi/linux).
func TestSizes(t *testing.T) {
	for name, sizes := range map[string][2]uintptr{
		"fs_disk_quota":  {unsafe.Sizeof(diskQuota{}), 112},
		"fs_quota_statv": {unsafe.Sizeof(quotaState{}), 160},
		"fsxattr":        {unsafe.Sizeof(fsxattr{}), 28},
		"file_attr":      {unsafe.Sizeof(fileAttr{}), 24},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s has %d bytes, want %d", name, sizes[0], sizes[1])
		}
	}
}

func TestChange(t *testing.T) {
	n := func(n uint64) *uint64 { return &n }
	had := Bounds{Bytes: 8192, Files: 10}
	for _, c := range []struct {
		change Change
		want   Bounds
		refuse string
	}{
		{Change{}, had, ""},
		{Change{Bytes: n(10_000_000)}, Bounds{Bytes: 2441 * 4096, Files: 10}, ""},
		{Change{Bytes: n(0)}, Bounds{Files: 10}, ""},
		{Change{Files: n(0), SoftBytes: n(4096)}, Bounds{Bytes: 8192, SoftBytes: 4096}, ""},
		{Change{SoftBytes: n(12288)}, Bounds{Bytes: 8192, SoftBytes: 12288, Files: 10}, "above the hard one"},
		{Change{SoftFiles: n(11)}, Bounds{Bytes: 8192, Files: 10, SoftFiles: 11}, "above the hard one"},
		{Change{Bytes: n(100)}, Bounds{Files: 10}, "at least one block"},
		{Change{Bytes: n(0), Files: n(0)}, Bounds{}, "no limit would be left"},
	} {
		got := c.change.on(had, 4096)
		err := c.change.check(got, 4096)
		if got != c.want || (err == nil) != (c.refuse == "") || err != nil && !strings.Contains(err.Error(), c.refuse) {
			t.Errorf("%+v: %+v, %v; want %+v, %q", c.change, got, err, c.want, c.refuse)
		}
	}
}

func TestOver(t *testing.T) {
	b := Bounds{Bytes: 10e6, Files: 100}
	for _, c := range []struct {
		used Usage
		want string
	}{
		{Usage{10e6, 100}, ""},
		{Usage{12e6, 1}, "holds 12.0 MB, which is 2.00 MB more than 10.0 MB"},
		{Usage{1, 101}, "has 101 files and directories, which is 1 more than 100"},
	} {
		if got := b.over(c.used); got != c.want {
			t.Errorf("%+v: %q, want %q", c.used, got, c.want)
		}
	}
	if got := (Bounds{Bytes: 10e6, SoftBytes: 5e6, SoftFiles: 7}).String(); got != "10.0 MB (soft 5.00 MB) and soft 7 files" {
		t.Errorf("bounds are %q", got)
	}
}

// A file of another's is left as it is, and what is right already is not written.
func TestMarker(t *testing.T) {
	type result struct {
		project            uint32
		flags              uint64
		different, foreign bool
	}
	for _, c := range []struct {
		m       marker
		project uint32
		flags   uint64
		dir     bool
		want    result
	}{
		{marker{project: 7}, 0, 1, false, result{7, 1, true, false}},
		{marker{project: 7}, 0, 1, true, result{7, 1 | projInherit, true, false}},
		{marker{project: 7}, 7, projInherit, true, result{7, projInherit, false, false}},
		{marker{project: 7}, 7, 0, true, result{7, projInherit, true, false}},
		{marker{project: 7}, 8, 0, true, result{8, 0, false, true}},
		{marker{project: 7, off: true}, 7, 1 | projInherit, true, result{0, 1, true, false}},
		{marker{project: 7, off: true}, 7, 1, false, result{0, 1, true, false}},
		{marker{project: 7, off: true}, 0, projInherit, true, result{0, projInherit, false, false}},
		{marker{project: 7, off: true}, 8, 0, false, result{8, 0, false, true}},
	} {
		var got result
		got.project, got.flags, got.different, got.foreign = c.m.change(c.project, c.flags, c.dir)
		if got != c.want {
			t.Errorf("%+v of project %d, flags %#x: %+v, want %+v", c.m, c.project, c.flags, got, c.want)
		}
	}
}

func TestRecords(t *testing.T) {
	dir := t.TempDir()
	s := Store{Dir: filepath.Join(dir, "quotas"), Names: filepath.Join(dir, "projid")}
	unlock, err := s.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	r := record{Project: firstProject, Trees: []Tree{{"/srv/data", 42}}, Mount: "/srv", State: setting}
	if err := s.save(r); err != nil {
		t.Fatal(err)
	}
	release, free, err := s.hold(r.Project)
	if err != nil || !free {
		t.Fatalf("hold: %v, %v", free, err)
	}
	if _, free, err := s.hold(r.Project); err != nil || free {
		t.Errorf("what is held is held twice: %v", err)
	}
	if got := s.stateOf(r, true); got != "under way" {
		t.Errorf("one that is held is %q", got)
	}
	release()
	if got := s.stateOf(r, true); got != "interrupted" {
		t.Errorf("one that nobody holds is %q", got)
	}
	all, err := s.records()
	if err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], r) {
		t.Errorf("records: %+v, %v", all, err)
	}
	found, err := s.recorded(Place{Dirs: []string{"/srv/data"}}, all)
	if err != nil || found.Project != r.Project {
		t.Errorf("by its directory, which is gone: %+v, %v", found, err)
	}
	if err := s.forget(r.Project); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(s.Dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	for _, text := range []string{"{", "{}", `{"project": 7, "trees": [{"path": "/a"}]}`} {
		if err := os.WriteFile(s.path(firstProject), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.records(); err == nil || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s is read: %v", text, err)
		}
	}
}

func TestProjectNames(t *testing.T) {
	s := Store{Names: filepath.Join(t.TempDir(), "projid")}
	if names, err := s.projectNames(); err != nil || len(names) != 0 {
		t.Errorf("without a file: %v, %v", names, err)
	}
	if err := os.WriteFile(s.Names, []byte("# comment:5\nlogs:10\nbad\nweb: 11 \nlast:4294967296\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	names, err := s.projectNames()
	if want := (map[uint32]string{10: "logs", 11: "web"}); err != nil || !reflect.DeepEqual(names, want) {
		t.Errorf("names: %v, %v; want %v", names, err, want)
	}
}

// Where there are no quotas, a volume bounds the space all the same.
func TestWithoutQuotas(t *testing.T) {
	for fs, volume := range map[string]bool{"tmpfs": true, "nfs4": true, "f2fs": true, "btrfs": true, "overlay": false} {
		err := withoutQuotas("/srv", blkdev.Mount{FSType: fs, Point: "/srv"})
		remedied := (*fault.Remedied)(nil)
		if got := errors.As(err, &remedied) && remedied.Remedy.Do == fault.UseVolume; got != volume || !fault.IsUnsupported(err) {
			t.Errorf("%s: %v, names a volume: %t", fs, err, got)
		}
	}
}

// The commands that let a file system bound projects are copied to a shell: each name is a word there.
func TestRemediesAreQuoted(t *testing.T) {
	const node, point, bind = "/dev/mapper/$(reboot)", "/srv/$(reboot)", "/x y"
	for _, fs := range []string{"xfs", "ext4"} {
		f := &fileSystem{node: node, kernel: noQuotas{}, mount: blkdev.Mount{FSType: fs, Root: "/", Point: point}}
		f.all = []blkdev.Mount{f.mount, {FSType: fs, Root: "/below", Point: bind}}
		var no *fault.Unsupported
		if err := f.mustBound(); !errors.As(err, &no) {
			t.Fatal(err)
		}
		unquoted := strings.NewReplacer("'"+node+"'", "", "'"+point+"'", "").Replace(no.Remedy)
		if !strings.HasPrefix(no.Remedy, "umount '"+bind+"' '"+point+"' && ") || !strings.Contains(no.Remedy, "mount -o prjquota '"+node+"' '"+point+"'") || strings.Contains(unquoted, "$(") {
			t.Errorf("%s: %s", fs, no.Remedy)
		}
	}
}

// noQuotas is a kernel that was built without quotas.
type noQuotas struct{ kernel }

func (noQuotas) quotaState(*fileSystem) (quotaState, error) { return quotaState{}, unix.ENOSYS }
