package quota

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
)

// kind is a kind of targets with one target, or one error for all.
type kind struct {
	name, has string
	target    targets.Target
	err       error
}

func (k kind) Name() string { return k.name }

func (k kind) Resolve(_ context.Context, name string) (targets.Target, error) {
	switch {
	case k.err != nil && (k.has == "" || name == k.has):
		return targets.Target{}, k.err
	case name == k.has:
		return k.target, nil
	}
	return targets.Target{}, &targets.NotFound{Target: k.name + ":" + name, Why: "there is none"}
}

// machine is a host with a container called web, whose process 47 has an overlay for its root, and
// one that is stopped. Another kind of targets, which has no files, knows the names too.
func machine(t *testing.T) Finder {
	t.Helper()
	root := t.TempDir()
	overlay := "0:50 / %s rw - overlay overlay rw,lowerdir=/l,upperdir=/var/c/web/diff,workdir=/var/c/web/work\n"
	for name, text := range map[string]string{
		"proc/47/mountinfo": "90 1 " + strings.Replace(overlay, "%s", "/", 1),
		"proc/1/mountinfo":  "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n80 20 " + strings.Replace(overlay, "%s", "/var/c/web/merged", 1),
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700), os.WriteFile(filepath.Join(root, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	web := targets.Target{Kind: "docker", Name: "web", Lasting: "docker-web", Firsts: []int{47}}
	return Finder{Devices: blkdev.New(root), Kinds: func() ([]targets.Kind, error) {
		return []targets.Kind{
			kind{name: "unit", err: &targets.NoKindError{Err: &fault.Unsupported{Feature: "unit", Reason: "no systemd"}}},
			kind{name: "docker", has: "web", target: web},
			kind{name: "podman", has: "old", err: &targets.StoppedError{Target: "podman:old", Why: "it is stopped", Lasting: "podman-old"}},
			kind{name: "containerd", err: &targets.NoKindError{Err: &fault.Unsupported{Feature: "containerd", Reason: "no socket"}}},
		}, nil
	}}
}

func TestPlace(t *testing.T) {
	f := machine(t)
	t.Chdir(t.TempDir())
	if err := errors.Join(os.Mkdir("data", 0o700), os.Mkdir("web", 0o700)); err != nil {
		t.Fatal(err)
	}
	web := Place{Name: "docker:web", Lasting: "docker-web", Dirs: []string{"/var/c/web/diff", "/var/c/web/work"}}
	for _, c := range []struct {
		spec   string
		want   Place
		refuse string
		class  fault.Class
	}{
		{spec: "/srv/none", want: Place{Dirs: []string{"/srv/none"}}},
		{spec: ".", want: Place{Dirs: []string{"."}}},
		{spec: "data", want: Place{Dirs: []string{"data"}}}, // no container is called so
		{spec: "none", want: Place{Dirs: []string{"none"}}}, // whoever uses it sees that it is not there
		{spec: "./web", want: Place{Dirs: []string{"./web"}}},
		{spec: "docker:web", want: web},
		{spec: "web", refuse: "more than one thing has this name; write one of ./web, docker:web"},
		{spec: "old", refuse: "podman:old: it is stopped"},
		{spec: "docker:none", refuse: "docker:none: there is none", class: fault.NotFound},
		{spec: "containerd:x/y", refuse: "no socket", class: fault.NotPossible},
		{spec: "unit:nginx", refuse: "unit:nginx has no directory of its own; name a directory, or a container (docker:NAME, podman:NAME, containerd:NAME)", class: fault.WrongUse},
		{spec: "pid:1", refuse: "has no directory of its own", class: fault.WrongUse},
		{spec: "pod:a/b", refuse: "has no directory of its own", class: fault.WrongUse},
		{spec: "frob:x", want: Place{Dirs: []string{"frob:x"}}}, // no kind of target
	} {
		got, err := f.Place(context.Background(), c.spec)
		if c.refuse == "" && (err != nil || !reflect.DeepEqual(got, c.want)) {
			t.Errorf("%s: %+v, %v; want %+v", c.spec, got, err, c.want)
		}
		if c.refuse != "" && (err == nil || !strings.Contains(err.Error(), c.refuse) || fault.ClassOf(err) != c.class) {
			t.Errorf("%s: %v (class %d), want %q", c.spec, err, fault.ClassOf(err), c.refuse)
		}
	}
	if err := os.Remove("web"); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Place(context.Background(), "web"); err != nil || !reflect.DeepEqual(got, web) {
		t.Errorf("web without a directory of that name: %+v, %v", got, err)
	}
}

// A host without targets has directories.
func TestPlaceWithoutTargets(t *testing.T) {
	none := &fault.Unsupported{Feature: "limit disk I/O", Reason: "no controller"}
	f := Finder{Kinds: func() ([]targets.Kind, error) { return nil, none }}
	if got, err := f.Place(context.Background(), "data"); err != nil || !reflect.DeepEqual(got, Place{Dirs: []string{"data"}}) {
		t.Errorf("data: %+v, %v", got, err)
	}
	if _, err := f.Place(context.Background(), "docker:web"); !errors.Is(err, none) {
		t.Errorf("docker:web: %v", err)
	}
	broken := errors.New("/proc is not there")
	f.Kinds = func() ([]targets.Kind, error) { return nil, broken }
	if _, err := f.Place(context.Background(), "data"); !errors.Is(err, broken) {
		t.Errorf("data, where nothing can be read: %v", err)
	}
}

func TestOnRecord(t *testing.T) {
	f := machine(t)
	for spec, want := range map[string]Place{
		"65536":           {Project: 65536},
		"podman:old":      {Name: "podman:old", Lasting: "podman-old"},
		"docker:gone":     {Name: "docker:gone"},
		"containerd:gone": {Name: "containerd:gone"},
		"/srv/data":       {Dirs: []string{"/srv/data"}},
		"0":               {Dirs: []string{"0"}}, // no project has that number
		"docker:web":      {Name: "docker:web", Lasting: "docker-web", Dirs: []string{"/var/c/web/diff", "/var/c/web/work"}},
	} {
		if got, err := f.OnRecord(context.Background(), spec); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", spec, got, err, want)
		}
	}
	if _, err := f.OnRecord(context.Background(), "unit:nginx"); fault.ClassOf(err) != fault.WrongUse {
		t.Errorf("unit:nginx: %v", err)
	}
}

// What a process has mounted itself is not believed, nor is a path that says nothing here.
func TestChangedBy(t *testing.T) {
	n := blkdev.Number{Major: 0, Minor: 50}
	root := blkdev.Mount{Number: n, Point: "/", FSType: "overlay", SuperOptions: "rw,upperdir=/forged,workdir=/forged"}
	host := func(fstype, options string) []blkdev.Mount {
		return []blkdev.Mount{{Number: blkdev.Number{Major: 8, Minor: 1}, Point: "/", FSType: "ext4"}, {Number: n, Point: "/var/c/merged", FSType: fstype, SuperOptions: options}}
	}
	web := targets.Target{Kind: "docker", Name: "web"}
	for _, c := range []struct {
		about     string
		its, host []blkdev.Mount
		want      []string
		refuse    string
		class     fault.Class
	}{
		{about: "an overlay", its: []blkdev.Mount{root}, host: host("overlay", "rw,upperdir=/u,workdir=/w"), want: []string{"/u", "/w"}},
		{about: "no root", its: nil, host: host("overlay", "rw,upperdir=/u,workdir=/w"), refuse: "weir does not see the root directory of its first process, which may have just ended; try again"},
		{about: "a mount of its own", its: []blkdev.Mount{root}, host: host("overlay", "")[:1], refuse: "is not mounted on this host"},
		{about: "another file system of that number", its: []blkdev.Mount{root}, host: host("tmpfs", ""), refuse: "is not mounted on this host"},
		{about: "a read-only overlay", its: []blkdev.Mount{root}, host: host("overlay", "ro,lowerdir=/l"), refuse: "no overlay with an upper directory", class: fault.NotPossible},
		{about: "a relative path", its: []blkdev.Mount{root}, host: host("overlay", "rw,upperdir=u,workdir=/w"), refuse: "u is a relative path"},
		{about: "no work directory", its: []blkdev.Mount{root}, host: host("overlay", "rw,upperdir=/u"), refuse: "is a relative path"},
		{about: "an open directory", its: []blkdev.Mount{root}, host: host("overlay", "rw,upperdir=/proc/self/fd/3,workdir=/w"), refuse: "was an open directory of the process"},
	} {
		got, err := changedBy(web, c.its, c.host)
		if c.refuse == "" && (err != nil || !reflect.DeepEqual(got, c.want)) {
			t.Errorf("%s: %q, %v", c.about, got, err)
		}
		if c.refuse != "" && (err == nil || !strings.Contains(err.Error(), c.refuse) || fault.ClassOf(err) != c.class) {
			t.Errorf("%s: %v, want %q", c.about, err, c.refuse)
		}
	}
	if _, err := (Finder{}).Of(web); err == nil || !strings.Contains(err.Error(), "has no running process") {
		t.Errorf("a target without processes: %v", err)
	}
}
