package lab

import (
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/lab/environ"
)

func TestRequirements(t *testing.T) {
	v1 := environ.Environ{Lane: "native", Kernel: "6.18.44-x", Cgroups: environ.Cgroups{Mode: environ.Hybrid, Blkio: "/b", Unified: "/u"}}
	v2 := environ.Environ{
		Lane: "uml", Kernel: "7.2.4", Features: []string{"rates", "dm"},
		Cgroups: environ.Cgroups{Mode: environ.V2, Unified: "/u", IOInV2: true, MemInV2: true},
		Disks:   []environ.Disk{{Name: "ext4-0", FS: "ext4"}},
	}
	for _, c := range []struct {
		need     Requirement
		one, two bool // met in v1, in v2
	}{
		{V1, true, false}, {V2, false, true}, {Hybrid, true, false}, {Memory, false, true},
		{Guest, false, true}, {Rates, false, true}, {DM, false, true}, {Systemd, false, false},
		{MinKernel(7, 1), false, true}, {MinKernel(6, 18), true, true}, {MinKernel(5, 20), true, true},
		{FS("ext4"), true, true}, {FS("zfs"), false, false},
		{Command("sh"), true, true}, {Command("no-such-program"), false, false},
		{Once, false, !testing.Short()}, {Lane("native"), true, false}, {"misspelt", false, false}, {"mis:spelt", false, false},
	} {
		if c.need == FS("ext4") {
			c.one = c.need.check(v1) == nil // depends on this host
		}
		if got := c.need.check(v1) == nil; got != c.one {
			t.Errorf("%s on v1: met %v, want %v", c.need, got, c.one)
		}
		if got := c.need.check(v2) == nil; got != c.two {
			t.Errorf("%s on v2: met %v, want %v", c.need, got, c.two)
		}
	}
}

// TestOnce: on one kernel of the default matrix, on each of a run that asks for more.
func TestOnce(t *testing.T) {
	second := environ.Environ{Lane: "uml", Kernel: "6.1.176"}
	t.Setenv(environ.Everywhere, "")
	if Once.check(second) == nil {
		t.Error("on a second kernel")
	}
	t.Setenv(environ.Everywhere, "1")
	if err := Once.check(second); err != nil && !testing.Short() {
		t.Error(err)
	}
}

// TestNewest: in a short run on the newest kernel alone, unless more is asked for.
func TestNewest(t *testing.T) {
	for kernel, short := range map[string]bool{"6.1.176": false, "7.2.4": true, "6.18.5": true} {
		for everywhere, want := range map[string]bool{"": short || !testing.Short(), "1": true} {
			t.Setenv(environ.Everywhere, everywhere)
			if err := Newest.check(environ.Environ{Kernel: kernel}); (err == nil) != want {
				t.Errorf("%s, everywhere %q: %v", kernel, everywhere, err)
			}
		}
	}
}

// TestOnceOnOneKind: on one kind of cgroups of the default matrix, on both of a run that asks
// for more.
func TestOnceOnOneKind(t *testing.T) {
	v1 := environ.Environ{Lane: "uml", Kernel: "7.2.4", Cgroups: environ.Cgroups{Blkio: "/b"}}
	v2 := environ.Environ{Lane: "uml", Kernel: "7.2.4", Cgroups: environ.Cgroups{Unified: "/u", IOInV2: true}}
	for everywhere, want := range map[string]bool{"": false, "1": true} {
		t.Setenv(environ.Everywhere, everywhere)
		long := !testing.Short() // a short run has neither
		want = want && long
		if (OnceV1.check(v1) == nil) != long || (OnceV2.check(v2) == nil) != long {
			t.Errorf("everywhere %q: where they were asked for: want %v", everywhere, long)
		}
		if other := OnceV1.check(v2) == nil; other != want || (OnceV2.check(v1) == nil) != want {
			t.Errorf("everywhere %q: on the other kind too: %v, want %v", everywhere, other, want)
		}
	}
}

// TestWhole: nowhere by default, and wherever more is asked for.
func TestWhole(t *testing.T) {
	t.Setenv(environ.Everywhere, "")
	if Whole.check(environ.Environ{Lane: "uml"}) == nil {
		t.Error("in a default run")
	}
	t.Setenv(environ.Everywhere, "1")
	if err := Whole.check(environ.Environ{Lane: "uml"}); err != nil {
		t.Error(err)
	}
}

// TestOnly: a guest for tests that ask for several things together skips those that
// ask for less, whatever else they ask for.
func TestOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "environ.json")
	e := environ.Environ{Guest: "full-qemu", Lane: "qemu", Features: []string{"bpf", "systemd", "docker"}, Only: []string{"bpf", "systemd"}}
	if err := e.Save(file); err != nil {
		t.Fatal(err)
	}
	t.Setenv(environ.Variable, file)
	for _, c := range []struct {
		needs []Requirement
		runs  bool
	}{
		{[]Requirement{BPF, Systemd}, true},
		{[]Requirement{Docker, Systemd, BPF}, true},
		{[]Requirement{BPF}, false},
		{[]Requirement{Docker, Systemd}, false},
		{[]Requirement{BPF, Systemd, Podman}, false},
		{[]Requirement{Lane("qemu")}, true}, // of emulation itself
		{[]Requirement{Lane("uml")}, false},
		{nil, true}, // as the tests of weir's start have it
	} {
		ran := false
		t.Run("inner", func(t *testing.T) {
			if got := Here(t); got.Guest != e.Guest {
				t.Errorf("here is %q, want %q", got.Guest, e.Guest)
			}
			Need(t, c.needs...)
			ran = true
		})
		if ran != c.runs {
			t.Errorf("%v: ran %v, want %v", c.needs, ran, c.runs)
		}
	}
}

func TestNeedOutsideTheLab(t *testing.T) {
	t.Setenv(environ.Variable, "")
	skipped := false
	t.Run("inner", func(t *testing.T) {
		t.Cleanup(func() { skipped = t.Skipped() })
		Need(t, V2)
	})
	if !skipped {
		t.Error("a test ran outside any lab")
	}
}
