package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A follower notes, as steps, what happens to a machine beside the calls that it is told of: files
// that come and go, records, lines of sysfs, programs.
type follower struct {
	*memory
	s   Store
	v   Volume
	was map[string]string
}

func (f *follower) state() map[string]string {
	f.t.Helper()
	now := map[string]string{}
	for _, path := range []string{f.v.Image, f.v.Mount, f.s.path(f.v.Name, ready), f.s.path(f.v.Name, making)} {
		if info, err := os.Lstat(path); err == nil && path != "" {
			now[path] = "there"
			if text, err := os.ReadFile(path); err == nil && strings.Contains(path, ".records") {
				now[path] = string(text)
			} else if info.Mode().IsRegular() {
				now[path] = sizeText(uint64(info.Size()))
			}
		}
	}
	lines, err := filepath.Glob(filepath.Join(f.host.Root, "sys/class/bdi/*/*"))
	must(f.t, err)
	for _, path := range lines {
		text, err := os.ReadFile(path)
		must(f.t, err)
		info, err := os.Stat(path)
		must(f.t, err)
		now[path] = strings.TrimSpace(string(text))
		if !info.ModTime().Equal(asMade) {
			now[path] += written
		}
	}
	return now
}

// written marks what was written to a file of sysfs since somebody looked.
const written = " (written)"

// compare notes what has changed.
func (f *follower) compare() {
	now := f.state()
	record := f.s.path(f.v.Name, ready)
	for path, text := range now {
		if text, is := strings.CutSuffix(text, written); is {
			f.steps = append(f.steps, hold.Step{File: strings.TrimPrefix(path, f.host.Root), Line: text})
			must(f.t, os.Chtimes(path, asMade, asMade))
		}
	}
	switch {
	case now[f.v.Image] != "" && f.was[f.v.Image] != now[f.v.Image]:
		f.steps = append(f.steps, called("allocate %s for %s", now[f.v.Image], f.v.Image))
	case now[f.v.Image] == "" && f.was[f.v.Image] != "":
		f.steps = append(f.steps, hold.Step{File: f.v.Image})
	}
	for _, line := range f.ran()[f.programsSeen():] {
		f.seen[line] = true
		line = strings.Replace(line, "/proc/self/fd/3", f.v.Image, 1)
		f.steps = append(f.steps, hold.Step{Command: line})
	}
	switch {
	case now[f.v.Mount] != "" && f.was[f.v.Mount] == "":
		f.steps = append(f.steps, called("make the directory %s", f.v.Mount))
	case now[f.v.Mount] == "" && f.was[f.v.Mount] != "":
		f.steps = append(f.steps, called("remove the directory %s", f.v.Mount))
	}
	switch {
	case now[record] == "" && f.was[record] != "":
		f.steps = append(f.steps, hold.Step{File: record})
	case now[record] != f.was[record]:
		f.steps = append(f.steps, called("save the record %s", record))
	}
	f.was = now
}

func (f *follower) programsSeen() int { return len(f.seen) }

// TestStepsAreTheDeed holds the steps of each verb's dry run against what the verb does then: to
// the machine, to rules and files, and to the record. On v1 the root group has rules.
func TestStepsAreTheDeed(t *testing.T) {
	l := limit.Limit{WBPS: limit.PerSecond(20e6), RIOPS: limit.Unlimited}
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, s Store, m *memory)
		steps   func(t *testing.T, s Store, m *memory) ([]hold.Step, error)
		do      func(t *testing.T, s Store, m *memory) error
		least   int // steps
	}{
		{"create", nothing, func(_ *testing.T, s Store, _ *memory) ([]hold.Step, error) { return s.CreateSteps(spec("data")) },
			func(t *testing.T, s Store, _ *memory) error { return third(s.Create(t.Context(), spec("data"))) }, 10},
		{"create without a limit", nothing, func(_ *testing.T, s Store, _ *memory) ([]hold.Step, error) { return s.CreateSteps(without()) },
			func(t *testing.T, s Store, _ *memory) error { return third(s.Create(t.Context(), without())) }, 8},
		{"set", made, func(_ *testing.T, s Store, _ *memory) ([]hold.Step, error) { return s.SetSteps("data", l, nil) },
			func(t *testing.T, s Store, _ *memory) error { return third(s.Set(t.Context(), "data", l, nil)) }, 2},
		{"set while it is down", down, func(_ *testing.T, s Store, _ *memory) ([]hold.Step, error) { return s.SetSteps("data", l, nil) },
			func(t *testing.T, s Store, _ *memory) error { return third(s.Set(t.Context(), "data", l, nil)) }, 1},
		{"resize", func(t *testing.T, s Store, m *memory) {
			made(t, s, m)
			v, err := s.Find("data")
			must(t, err)
			v.FS = "xfs"
			must(t, s.save(v, ready))
		}, func(_ *testing.T, s Store, _ *memory) ([]hold.Step, error) { return s.ResizeSteps("data", 20<<20) },
			func(t *testing.T, s Store, _ *memory) error { return lone(s.Resize(t.Context(), "data", 20<<20)) }, 3},
		{"down", made, func(_ *testing.T, s Store, _ *memory) ([]hold.Step, error) { return s.DownSteps("data") },
			func(t *testing.T, s Store, _ *memory) error { return lone(s.Down(t.Context(), "data")) }, 3},
		{"up", down, upSteps, up, 7},
		{"up without its directory", func(t *testing.T, s Store, m *memory) {
			down(t, s, m)
			must(t, os.Remove(filepath.Join(s.Dir, "data")))
		}, upSteps, up, 8},
		{"up with its last device left", func(t *testing.T, s Store, m *memory) {
			down(t, s, m)
			must(t, m.add(firstLoop))
		}, upSteps, up, 8},
		{"up while it is up", func(t *testing.T, s Store, m *memory) {
			made(t, s, m)
			must(t, s.Kernel.Unbound(m.numberOfNew(firstLoop), bounds{}.Dirty))
		}, upSteps, up, 2},
		{"delete", down, func(_ *testing.T, s Store, _ *memory) ([]hold.Step, error) { return s.DeleteSteps("data") },
			func(t *testing.T, s Store, _ *memory) error { return lone(s.Delete(t.Context(), "data")) }, 3},
		{"forget", down, func(_ *testing.T, s Store, _ *memory) ([]hold.Step, error) { return s.ForgetSteps("data") },
			func(t *testing.T, s Store, _ *memory) error { return lone(s.Forget(t.Context(), "data")) }, 1},
		{"adopt", nothing, func(t *testing.T, s Store, m *memory) ([]hold.Step, error) {
			return s.AdoptSteps(t.Context(), filepath.Join(m.dir, "disk"), l)
		}, func(t *testing.T, s Store, m *memory) error {
			return third(s.Adopt(t.Context(), filepath.Join(m.dir, "disk"), l, nil))
		}, 3},
		{"delete adopted", adopted, func(_ *testing.T, s Store, m *memory) ([]hold.Step, error) { return s.DeleteSteps(m.adopted()) },
			func(t *testing.T, s Store, m *memory) error { return lone(s.Delete(t.Context(), m.adopted())) }, 2},
	} {
		for kind, version := range map[string]cgroupfs.Version{"v1": cgroupfs.V1, "v2": cgroupfs.V2} {
			if version == cgroupfs.V2 && c.name != "create" && c.name != "set" {
				continue // it differs in the rules of the root group alone
			}
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				s, m := newStore(t, version)
				c.prepare(t, s, m)
				f := &follower{memory: m, s: s}
				f.v = Volume{Name: "data", Mount: filepath.Join(s.Dir, "data"), Image: filepath.Join(s.Dir, "data.img")}
				if strings.Contains(c.name, "adopt") {
					f.v = Volume{Name: m.adopted(), Mount: filepath.Join(m.dir, "disk")}
				}
				f.compare()
				m.steps, f.was = nil, f.state()
				before := f.was
				for _, line := range m.ran() {
					m.seen[line] = true
				}
				m.follow = f
				shown, err := c.steps(t, s, m)
				if err != nil {
					t.Fatal(err)
				}
				if m.steps != nil || !reflect.DeepEqual(before, f.state()) {
					t.Errorf("a dry run did %+v", m.steps)
				}
				if err := c.do(t, s, m); err != nil {
					t.Fatal(err)
				}
				f.compare()
				if !same(m.steps, shown) || len(shown) < c.least {
					t.Errorf("did\n%+v\nshown\n%+v", m.steps, shown)
				}
			})
		}
	}
}

func nothing(*testing.T, Store, *memory) {}

func made(t *testing.T, s Store, _ *memory) {
	t.Helper()
	must(t, third(s.Create(t.Context(), spec("data"))))
}

func down(t *testing.T, s Store, m *memory) {
	t.Helper()
	made(t, s, m)
	must(t, lone(s.Down(t.Context(), "data")))
}

func adopted(t *testing.T, s Store, m *memory) {
	t.Helper()
	must(t, third(s.Adopt(t.Context(), filepath.Join(m.dir, "disk"), limit.Limit{WBPS: limit.PerSecond(20e6)}, nil)))
}

func (m *memory) adopted() string {
	return strings.ReplaceAll(strings.Trim(filepath.Join(m.dir, "disk"), "/"), "/", "-")
}

func upSteps(_ *testing.T, s Store, _ *memory) ([]hold.Step, error) { return s.UpSteps("data") }

func up(t *testing.T, s Store, _ *memory) error { return third(s.Up(t.Context(), "data", false)) }

func without() Spec {
	one := spec("data")
	one.Limit = limit.Limit{}
	return one
}

// same compares steps without their order: bounds are noted when they are seen.
func same(did, shown []hold.Step) bool {
	left := map[hold.Step]int{}
	for _, s := range did {
		left[s]++
	}
	for _, s := range shown {
		left[s]--
	}
	for _, n := range left {
		if n != 0 {
			return false
		}
	}
	return true
}

// A dry run of what is not there, or not possible, is refused as the deed is.
func TestStepsRefuse(t *testing.T) {
	s, m := newStore(t, cgroupfs.V2)
	var none *NameError
	for verb, steps := range map[string]func() ([]hold.Step, error){
		"set":    func() ([]hold.Step, error) { return s.SetSteps("data", limit.Limit{}, nil) },
		"resize": func() ([]hold.Step, error) { return s.ResizeSteps("data", 1<<30) },
		"up":     func() ([]hold.Step, error) { return s.UpSteps("data") },
		"down":   func() ([]hold.Step, error) { return s.DownSteps("data") },
		"delete": func() ([]hold.Step, error) { return s.DeleteSteps("data") },
		"forget": func() ([]hold.Step, error) { return s.ForgetSteps("data") },
	} {
		if _, err := steps(); !errors.As(err, &none) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	made(t, s, m)
	for verb, err := range map[string]error{"create": failed(s.CreateSteps(spec("data"))), "delete": failed(s.DeleteSteps("data")), "forget": failed(s.ForgetSteps("data"))} {
		if err == nil {
			t.Errorf("%s of one that is up: no error", verb)
		}
	}
	adopted(t, s, m)
	for verb, err := range map[string]error{"down": failed(s.DownSteps(m.adopted())), "resize": failed(s.ResizeSteps(m.adopted(), 1<<30)), "adopt": failed(s.AdoptSteps(t.Context(), filepath.Join(m.dir, "disk"), limit.Limit{}))} {
		if err == nil {
			t.Errorf("%s of an adopted one: no error", verb)
		}
	}
	if steps, err := s.DownSteps("data"); err != nil || len(steps) != 3 {
		t.Errorf("%+v, %v", steps, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if its, err := s.isStill(Volume{Device: blkdev.Number{Major: 9, Minor: 9}}); its || err != nil {
		t.Errorf("a device that is gone: %v, %v", its, err)
	}
}

func failed(_ []hold.Step, err error) error { return err }
