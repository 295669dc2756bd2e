package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A volume is made, mounted with its limit, unmounted, mounted again, and deleted with all that
// was made for it.
func TestLife(t *testing.T) {
	for name, version := range map[string]cgroupfs.Version{"v1": cgroupfs.V1, "v2": cgroupfs.V2} {
		t.Run(name, func(t *testing.T) {
			s, m := newStore(t, version)
			v, strict, err := s.Create(t.Context(), spec("data"))
			must(t, err)
			dev := m.numberOfNew(firstLoop)
			at, err := s.Where(v)
			if err != nil || !strict || !at.Up || at.Device != dev || at.Mount.Point != filepath.Join(s.Dir, "data") || v.MountID != at.Mount.ID || !v.MadeMount {
				t.Errorf("%+v is at %+v, strict %v, %v", v, at, strict, err)
			}
			st, err := os.Stat(v.Image)
			if err != nil || st.Size() != 16<<20 || blocks(t, v.Image) < 16<<20 || st.Mode() != 0o600 {
				t.Errorf("its file is %+v, %v", st, err)
			}
			if got := m.ran(); len(got) != 1 || !strings.HasPrefix(got[0], "mkfs.ext4 -q -F ") || !strings.HasSuffix(got[0], " /proc/self/fd/3") {
				t.Errorf("ran %q", got)
			}
			if version == cgroupfs.V1 && (m.rules("write_bps") != dev.String()+" 10000000" || m.rules("read_iops") != dev.String()+" 500" || m.rules("read_bps") != "") {
				t.Errorf("rules are %q, %q, %q", m.rules("write_bps"), m.rules("read_iops"), m.rules("read_bps"))
			}
			if m.bdi(dev, "max_bytes") != "5000000" || m.bdi(dev, "strict_limit") != "1" {
				t.Errorf("dirty bounds are %s, strict %s", m.bdi(dev, "max_bytes"), m.bdi(dev, "strict_limit"))
			}
			if again, err := s.Find(v.Mount); err != nil || again.Name != "data" || again.Limit != v.Limit {
				t.Errorf("on record is %+v, %v", again, err)
			}
			var name *NameError
			if _, _, err := s.Create(t.Context(), spec("data")); !errors.As(err, &name) {
				t.Errorf("a second one of that name: %v", err)
			}
			if _, err := s.Delete(t.Context(), "data"); err == nil || !strings.Contains(err.Error(), "is mounted at") {
				t.Errorf("deleted while it is up: %v", err)
			}
			if _, err := s.Forget(t.Context(), "data"); err == nil || !strings.Contains(err.Error(), "is mounted at") {
				t.Errorf("forgotten while it is up: %v", err)
			}
			if _, err := s.Down(t.Context(), "data"); err != nil || len(m.loops) != 0 {
				t.Errorf("down: %v; devices %v", err, m.loops)
			}
			if _, err := s.Down(t.Context(), "data"); err != nil {
				t.Errorf("down again: %v", err)
			}
			m.loops[firstLoop] = &loop{file: "/another's"}
			if v, _, err = s.Up(t.Context(), "data", false); err != nil || v.Loop != firstLoop+1 {
				t.Errorf("up: %+v, %v", v, err)
			}
			if _, strict, err = s.Up(t.Context(), "data", false); err != nil || !strict {
				t.Errorf("up again: %v", err)
			}
			delete(m.loops, firstLoop)
			_, err = s.Down(t.Context(), "data")
			must(t, err)
			if gone, err := s.Delete(t.Context(), "data"); err != nil || gone.Name != "data" || m.left(s, "data") != nil {
				t.Errorf("deleted: %v, and left %q", err, m.left(s, "data"))
			}
			if all, err := s.List(); err != nil || all != nil {
				t.Errorf("listed: %+v, %v", all, err)
			}
		})
	}
}

// Whatever step fails, or when it is interrupted, nothing is left of a volume.
func TestCreateIsTakenBack(t *testing.T) {
	for _, what := range []string{"add", "attach", "keep", "rule", "mount"} {
		t.Run(what, func(t *testing.T) {
			s, m := newStore(t, cgroupfs.V1)
			broken := errors.New("the kernel does not want to")
			m.refuse = func(now string) error {
				if now == what {
					return broken
				}
				return nil
			}
			if _, _, err := s.Create(t.Context(), spec("data")); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "volume data: ") {
				t.Errorf("%v", err)
			}
			if left := m.left(s, "data"); left != nil {
				t.Errorf("left is %q", left)
			}
		})
	}
	t.Run("mkfs", func(t *testing.T) {
		s, m := newStore(t, cgroupfs.V2)
		must(t, os.WriteFile(filepath.Join(m.bin, "fail"), nil, 0o600))
		if _, _, err := s.Create(t.Context(), spec("data")); err == nil || !strings.Contains(err.Error(), "mkfs.ext4: exit status 1: no luck") || m.left(s, "data") != nil {
			t.Errorf("%v; left is %q", err, m.left(s, "data"))
		}
		t.Setenv("PATH", "/nowhere")
		f, _ := formatOf("ext4")
		if err := runTool(t.Context(), f.pack, []string{"mkfs.none"}, nil); fault.ClassOf(err) != fault.NotPossible || !strings.Contains(err.Error(), "not installed") {
			t.Errorf("without the program: %v", err)
		}
	})
	t.Run("Ctrl-C", func(t *testing.T) {
		s, m := newStore(t, cgroupfs.V2)
		ctx, stop := context.WithCancelCause(t.Context())
		asked := errors.New("Ctrl-C")
		m.refuse = func(now string) error {
			if now == "attach" {
				stop(asked)
			}
			return nil
		}
		if _, _, err := s.Create(ctx, spec("data")); !errors.Is(err, asked) || m.left(s, "data") != nil {
			t.Errorf("%v; left is %q", err, m.left(s, "data"))
		}
	})
}

// What can be no volume is refused, and nothing is made.
func TestCreateRefuses(t *testing.T) {
	s, m := newStore(t, cgroupfs.V1)
	full := filepath.Join(m.dir, "full")
	theirs := filepath.Join(m.dir, "theirs")
	must(t, os.MkdirAll(filepath.Join(full, "x"), 0o755))
	must(t, os.Mkdir(theirs, 0o755))
	must(t, os.Chown(theirs, 1000, 1000))
	must(t, os.WriteFile(filepath.Join(m.dir, "taken.img"), nil, 0o600))
	change := func(f func(*Spec)) Spec {
		one := spec("data")
		f(&one)
		return one
	}
	for _, c := range []struct {
		spec  Spec
		want  string
		class fault.Class
	}{
		{change(func(s *Spec) { s.FS = "btrfs" }), "weir cannot make btrfs; write ext4 or xfs", fault.WrongUse},
		{change(func(s *Spec) { s.Size = 1 << 20 }), "ext4 needs at least 16 MiB", fault.WrongUse},
		{change(func(s *Spec) { s.What = "a b" }), "a name is at most 64", fault.WrongUse},
		{change(func(s *Spec) { s.Size = 1 << 60 }), "are free there", fault.NotDone},
		{change(func(s *Spec) { s.What = full }), "has files in it", fault.NotDone},
		{change(func(s *Spec) { s.What = filepath.Join(m.dir, "disk") }), "something is mounted at", fault.NotDone},
		{change(func(s *Spec) { s.On = theirs }), "does not belong to root", fault.NotDone},
		{change(func(s *Spec) { s.What, s.On = "taken", m.dir }), "exists already", fault.NotDone},
	} {
		_, _, err := s.Create(t.Context(), c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.ClassOf(err) != c.class {
			t.Errorf("%+v: %v (class %d), want %q", c.spec, err, fault.ClassOf(err), c.want)
		}
		if _, err := s.CreateSteps(c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, as a dry run: %v, want %q", c.spec, err, c.want)
		}
		if left := m.left(s, "data"); left != nil {
			t.Errorf("%+v leaves %q", c.spec, left)
		}
	}
	none := s
	none.IO = nil
	if _, _, err := none.Create(t.Context(), spec("data")); !errors.Is(err, s.WhyNone) {
		t.Errorf("a limit where none can be: %v", err)
	}
	unlimited := spec("data")
	unlimited.Limit = limit.Limit{}
	if _, strict, err := none.Create(t.Context(), unlimited); err != nil || !strict || m.bdi(m.numberOfNew(firstLoop), "strict_limit") != "0" {
		t.Errorf("without a limit: %v", err)
	}
}

// A change of the limit is in force at once, also if the volume is down when it is made.
func TestSetVolume(t *testing.T) {
	s, m := newStore(t, cgroupfs.V1)
	_, _, err := s.Create(t.Context(), spec("data"))
	must(t, err)
	dev := m.numberOfNew(firstLoop)
	l := limit.Limit{WBPS: limit.PerSecond(30e6), RIOPS: limit.Unlimited}
	v, strict, err := s.Set(t.Context(), "data", l, []string{"docker:web"})
	if err != nil || !strict || v.Limit.String() != "write 30 MB/s" || len(v.For) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	if m.rules("write_bps") != dev.String()+" 30000000" || m.rules("read_iops") != "" || m.bdi(dev, "max_bytes") != "15000000" {
		t.Errorf("in force: %q, %q, %s", m.rules("write_bps"), m.rules("read_iops"), m.bdi(dev, "max_bytes"))
	}
	broken, rules := errors.New("no"), 0
	m.refuse = func(what string) error {
		if what == "rule" {
			if rules++; rules == 2 {
				return broken
			}
		}
		return nil
	}
	if _, _, err := s.Set(t.Context(), "data", limit.Limit{WBPS: limit.PerSecond(5), WIOPS: limit.PerSecond(6)}, nil); !errors.Is(err, broken) || m.rules("write_bps") != dev.String()+" 30000000" || m.rules("write_iops") != "" {
		t.Errorf("half refused: %v; in force: %q, %q", err, m.rules("write_bps"), m.rules("write_iops"))
	}
	if again, err := s.Find("data"); err != nil || again.Limit != v.Limit {
		t.Errorf("half refused, on record is %+v, %v", again, err)
	}
	m.refuse = nil
	if v, _, err = s.Set(t.Context(), "data", limit.Limit{WBPS: limit.Unlimited}, []string{"docker:web"}); err != nil || len(v.For) != 1 || m.rules("write_bps") != "" || m.bdi(dev, "strict_limit") != "0" {
		t.Errorf("lifted: %+v, %v; %q", v, err, m.rules("write_bps"))
	}
	_, err = s.Down(t.Context(), "data")
	must(t, err)
	if v, _, err = s.Set(t.Context(), "data", limit.Limit{RBPS: limit.PerSecond(7e6)}, nil); err != nil || m.rules("read_bps") != "" {
		t.Errorf("while it is down: %+v, %v; %q", v, err, m.rules("read_bps"))
	}
	if _, _, err = s.Up(t.Context(), "data", false); err != nil || m.rules("read_bps") != dev.String()+" 7000000" {
		t.Errorf("up: %v, %q", err, m.rules("read_bps"))
	}
	var none *NameError
	if _, _, err := s.Set(t.Context(), "none", l, nil); !errors.As(err, &none) || !strings.Contains(err.Error(), "the volumes are data") {
		t.Errorf("of none: %v", err)
	}
}

// A volume grows with its file, its device and its file system.
func TestResize(t *testing.T) {
	s, m := newStore(t, cgroupfs.V2)
	v, _, err := s.Create(t.Context(), spec("data"))
	must(t, err)
	may := mayResize(v)
	if _, err := s.Resize(t.Context(), "data", 16<<20); (err == nil) != (may == nil) || err != nil && fault.ClassOf(err) != fault.NotPossible {
		t.Errorf("ext4: %v, and this process may: %v", err, may)
	}
	v.FS = "xfs" // whose tool is told the directory
	must(t, s.save(v, ready))
	m.steps = nil
	if _, err := s.Resize(t.Context(), "data", 20<<20); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(v.Image)
	must(t, err)
	if ran := m.ran(); st.Size() != 20<<20 || len(m.steps) == 0 || ran[len(ran)-1] != "xfs_growfs "+v.Mount {
		t.Errorf("it has %d bytes, was told %+v, ran %q", st.Size(), m.steps, ran)
	}
	for _, c := range []struct {
		size uint64
		want string
	}{{16 << 20, "a mounted file system cannot shrink"}, {1 << 60, "are free there"}} {
		if _, err := s.Resize(t.Context(), "data", c.size); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("to %d: %v, want %q", c.size, err, c.want)
		}
		if _, err := s.ResizeSteps("data", c.size); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("to %d, as a dry run: %v, want %q", c.size, err, c.want)
		}
	}
	_, err = s.Down(t.Context(), "data")
	must(t, err)
	if _, err := s.Resize(t.Context(), "data", 30<<20); err == nil || !strings.Contains(err.Error(), "is down") {
		t.Errorf("while it is down: %v", err)
	}
}

// A volume is not brought up where it could do harm.
func TestUpRefuses(t *testing.T) {
	s, m := newStore(t, cgroupfs.V2)
	v, _, err := s.Create(t.Context(), spec("data"))
	must(t, err)
	_, err = s.Down(t.Context(), "data")
	must(t, err)
	for about, c := range map[string]struct {
		before, after func()
		want          string
	}{
		"its file is attached": {func() { m.loops[7] = &loop{file: v.Image, inode: v.File.Inode} }, func() { delete(m.loops, 7) }, "is attached to /dev/loop7 already"},
		"files are there":      {func() { must(t, os.WriteFile(filepath.Join(v.Mount, "x"), nil, 0o600)) }, func() { must(t, os.Remove(filepath.Join(v.Mount, "x"))) }, "has files in it, which were written"},
		"others may write it":  {func() { must(t, os.Chmod(v.Image, 0o666)) }, func() { must(t, os.Chmod(v.Image, 0o600)) }, "only root can write to"},
		"its file is away":     {func() { must(t, os.Rename(v.Image, v.Image+"x")) }, func() { must(t, os.Rename(v.Image+"x", v.Image)) }, "is the disk that its file is on mounted?"},
		"another is there": {func() { m.others = append(m.others, "40 23 254:32 / "+v.Mount+" rw - ext4 /dev/vdc rw\n"); m.show() },
			func() { m.others = m.others[:len(m.others)-1]; m.show() }, "/dev/vdc is mounted at"},
	} {
		c.before()
		if _, _, err := s.Up(t.Context(), "data", false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", about, err, c.want)
		}
		if _, err := s.UpSteps("data"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, as a dry run: %v, want %q", about, err, c.want)
		}
		c.after()
	}
	must(t, os.Remove(v.Mount))
	if _, _, err := s.Up(t.Context(), "data", false); err != nil {
		t.Errorf("without its directory, which weir made: %v", err)
	}
	_, err = s.Down(t.Context(), "data")
	must(t, err)
	must(t, os.Rename(v.Image, v.Image+".old"))
	must(t, os.WriteFile(v.Image, make([]byte, 1<<20), 0o600))
	var other *OtherFileError
	if _, _, err := s.Up(t.Context(), "data", false); !errors.As(err, &other) {
		t.Errorf("another file: %v", err)
	}
	if _, err := s.Delete(t.Context(), "data"); err == nil || !strings.Contains(err.Error(), "is not the file that it was created with") {
		t.Errorf("deleted with another file: %v", err)
	}
	if got, _, err := s.Up(t.Context(), "data", true); err != nil || got.File == v.File {
		t.Errorf("accepted: %+v, %v", got, err)
	}
}

// blocks is how much space a file has.
func blocks(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	return st.Blocks * 512
}
