package targets

import (
	"context"
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// names is a kind that knows some names.
type names struct {
	kind  string
	known []string
	err   error
}

func (n names) Name() string { return n.kind }

func (n names) Resolve(_ context.Context, name string) (Target, error) {
	if n.err != nil {
		return Target{}, n.err
	}
	if !slices.Contains(n.known, name) {
		return Target{}, &NotFound{Target: n.kind + ":" + name, Why: "unknown"}
	}
	return Target{Kind: n.kind, Name: name}, nil
}

// lacks is the error of a target without a group.
type lacks struct{}

func (lacks) Error() string  { return "no group" }
func (lacks) Target() string { return "slice:db" }

func TestResolve(t *testing.T) {
	broken := errors.New("cannot look")
	kinds := []Kind{names{kind: "unit", known: []string{"web", "a:b"}}, names{kind: "docker", known: []string{"web", "db"}}}
	for spec, want := range map[string]string{"unit:web": "unit:web", "docker:web": "docker:web", "db": "docker:db", "a:b": "unit:a:b"} {
		if got, err := Resolve(t.Context(), kinds, spec); err != nil || got.String() != want {
			t.Errorf("Resolve(%q) = %v, %v; want %s", spec, got, err, want)
		}
	}
	for spec, want := range map[string]string{
		"web":       `target "web": this name is ambiguous; write one of unit:web, docker:web`,
		"mail":      `target "mail": no unit or docker of this name; write the kind before it, such as unit:mail`,
		"unit:mail": "unit:mail: unknown",
		"dokcer:db": `target "dokcer:db": there is no kind "dokcer"; did you mean docker:db?`,
		"units:a:b": `target "units:a:b": there is no kind "units"; did you mean unit:a:b?`,
		"unti:":     `target "unti:": no unit or docker of this name; write the kind before it, such as unit:unti:`,
		"":          `target "": a name is needed, such as unit:nginx, docker:web or pid:4711`,
	} {
		if got, err := Resolve(t.Context(), kinds, spec); err == nil || err.Error() != want {
			t.Errorf("Resolve(%q) = %v, %v; want %s", spec, got, err, want)
		}
	}
	if _, err := Resolve(t.Context(), kinds, ""); fault.ClassOf(err) != fault.WrongUse {
		t.Errorf("an empty name is of the class %v", fault.ClassOf(err))
	}
	if _, err := Resolve(t.Context(), append([]Kind{names{kind: "pod", err: &NoKindError{&fault.Unsupported{Feature: "pod"}}}}, kinds...), "a\nb"); err == nil ||
		err.Error() != `target "a\nb": no unit or docker of this name; not available here: pod; write the kind before it, such as unit:NAME` {
		t.Error(err)
	}
	// One that has nothing of a name, or cannot have, does not stand in the way.
	for _, none := range []error{&NameError{broken}, &NoKindError{&fault.Unsupported{Feature: "pod"}}} {
		if got, err := Resolve(t.Context(), append([]Kind{names{kind: "pod", err: none}}, kinds...), "db"); err != nil || got.String() != "docker:db" {
			t.Errorf("Resolve(db) = %v, %v", got, err)
		}
	}
	// One that is there without a group counts.
	lacking := append([]Kind{names{kind: "slice", err: lacks{}}}, kinds...)
	if got, err := Resolve(t.Context(), lacking, "db"); err == nil || !strings.Contains(err.Error(), "write one of slice:db, docker:db") {
		t.Errorf("Resolve(db) = %v, %v; want both named", got, err)
	}
	if got, err := Resolve(t.Context(), lacking, "mail"); !errors.Is(err, lacks{}) {
		t.Errorf("Resolve(mail) = %v, %v; want %v", got, err, lacks{})
	}
	// A kind that cannot look must not make another one's match the only one.
	kinds = append(kinds, names{kind: "pod", err: broken})
	if got, err := Resolve(t.Context(), kinds, "db"); !errors.Is(err, broken) {
		t.Errorf("Resolve(db) = %v, %v; want %v", got, err, broken)
	}
}

func TestOwnerOf(t *testing.T) {
	const id = "3f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"
	group := cgrouptest.New(t, cgroupfs.V2, nil).Group
	for path, want := range map[string][2]Owner{ // without and with systemd as PID 1
		"/":                                     {{Kind: "kernel"}, {Kind: "kernel"}},
		"/system.slice/cron.service":            {{Kind: "unknown"}, {Kind: "systemd", Name: "cron.service", Unit: "cron.service"}},
		"/system.slice/x.service/inner":         {{Kind: "unknown"}, {Kind: "unknown"}},
		"/docker/" + id:                         {{Kind: "docker", Name: id[:12]}, {Kind: "docker", Name: id[:12]}},
		"/system.slice/docker-" + id + ".scope": {{Kind: "docker", Name: id[:12]}, {Kind: "docker", Name: id[:12], Unit: "docker-" + id + ".scope"}},
		"/system.slice/docker-x.scope":          {{Kind: "unknown"}, {Kind: "systemd", Name: "docker-x.scope", Unit: "docker-x.scope"}},
		"/machine.slice/libpod-" + id + ".scope/container":    {{Kind: "podman", Name: id[:12]}, {Kind: "podman", Name: id[:12]}},
		"/machine.slice/libpod-" + id + ".scope":              {{Kind: "podman", Name: id[:12]}, {Kind: "podman", Name: id[:12], Unit: "libpod-" + id + ".scope"}},
		"/libpod_parent/libpod-" + id:                         {{Kind: "podman", Name: id[:12]}, {Kind: "podman", Name: id[:12]}},
		"/machine.slice/libpod-conmon-" + id + ".scope":       {{Kind: "unknown"}, {Kind: "systemd", Name: "libpod-conmon-" + id + ".scope", Unit: "libpod-conmon-" + id + ".scope"}},
		`/machine.slice/machine-qemu\x2d3\x2dmy\x2ddb.scope`:  {{Kind: "libvirt", Name: "my-db"}, {Kind: "libvirt", Name: "my-db", Unit: `machine-qemu\x2d3\x2dmy\x2ddb.scope`}},
		`/machine.slice/machine-lxc\x2d1\x2ddb.scope/libvirt`: {{Kind: "libvirt", Name: "db"}, {Kind: "libvirt", Name: "db"}},
		"/libvirt":                         {{Kind: "unknown"}, {Kind: "unknown"}},
		`/machine.slice/machine-web.scope`: {{Kind: "unknown"}, {Kind: "systemd", Name: "machine-web.scope", Unit: "machine-web.scope"}},
		"/docker/" + id[:63] + "x":         {{Kind: "unknown"}, {Kind: "unknown"}},
		"/weir-3f2a":                       {{Kind: "weir"}, {Kind: "weir"}},
		"/system.slice/weir-3f2a.scope":    {{Kind: "weir"}, {Kind: "systemd", Name: "weir-3f2a.scope", Unit: "weir-3f2a.scope"}},
		"/batch":                           {{Kind: "unknown"}, {Kind: "unknown"}},
	} {
		for i, systemdRuns := range []bool{false, true} {
			if got := OwnerOf(group(path), systemdRuns); got != want[i] {
				t.Errorf("OwnerOf(%s, %t) = %v, want %v", path, systemdRuns, got, want[i])
			}
		}
	}
	if got := (Owner{Kind: "systemd", Name: "x.service"}).String(); got != "systemd (x.service)" {
		t.Errorf("String = %q", got)
	}
}

// Processes that see the same mounts count once; one that is gone, not at all.
func TestOneAView(t *testing.T) {
	const none = math.MaxInt32
	for _, c := range []struct{ pids, want []int }{
		{[]int{os.Getpid(), os.Getpid()}, []int{os.Getpid()}},
		{[]int{none, os.Getpid()}, []int{os.Getpid()}},
		{[]int{none, none - 1}, []int{none}},
	} {
		if got := oneAView(c.pids); !slices.Equal(got, c.want) {
			t.Errorf("oneAView(%v) = %v, want %v", c.pids, got, c.want)
		}
	}
}

func TestMembersAreThoseThatARuleBinds(t *testing.T) {
	group := cgrouptest.New(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup/x/cgroup.procs": "1\n2\n", "sys/fs/cgroup/x/y/cgroup.procs": "3\n", "sys/fs/cgroup/z/cgroup.procs": "4\n"}).Group
	got, err := Members(group("/x"))
	slices.Sort(got)
	if err != nil || !reflect.DeepEqual(got, []int{1, 2, 3}) {
		t.Errorf("Members = %v, %v", got, err)
	}
}

func TestAGoneGroupHasNoMembers(t *testing.T) {
	for _, version := range []cgroupfs.Version{cgroupfs.V1, cgroupfs.V2} {
		group := cgrouptest.New(t, version, nil).Group
		if got, err := Members(group("/gone")); err != nil || len(got) > 0 {
			t.Errorf("v%d: Members = %v, %v", version, got, err)
		}
	}
}
