package space

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

// A copy of a machine has no volumes and no quotas of its own, and nothing of this host's is shown
// or changed for it.
func TestACopyHasNone(t *testing.T) {
	lab.Unit(t)
	h := hosttest.Open(t, "v2", nil, host.Options{})
	if _, err := OpenVolumes(h); fault.ClassOf(err) != fault.NotPossible {
		t.Errorf("volumes: %v", err)
	}
	q := Quotas{h}
	_, list := q.List(t.Context())
	_, of := q.Of(t.Context(), "/srv")
	_, set := q.Set(t.Context(), QuotaRequest{Place: "/srv"}, nil)
	_, _, clear := q.Clear(t.Context(), "/srv", nil)
	_, forget := q.Forget(t.Context(), "/srv")
	for verb, err := range map[string]error{"list": list, "of": of, "set": set, "clear": clear, "forget": forget} {
		if fault.ClassOf(err) != fault.NotPossible {
			t.Errorf("quotas, %s: %v", verb, err)
		}
	}
	if st := q.OfTarget(t.Context(), targets.Target{Kind: "docker", Name: "web", Firsts: []int{1}}); st != nil {
		t.Errorf("a quota of a copy's container: %+v", st)
	}
}

// Where a container cannot be asked for, the place is not found: that is no fault of its file
// system, and a volume would not help.
func TestAPlaceThatIsNotFound(t *testing.T) {
	lab.Unit(t)
	q := Quotas{hosttest.Open(t, "v2", nil, host.Options{})}
	if set, err := q.set(t.Context(), QuotaRequest{Place: "docker:web"}, nil); !fault.IsUnsupported(err) || set.Dirs != nil {
		t.Errorf("%+v, %v", set, err)
	}
}

func TestOnlyRootMay(t *testing.T) {
	lab.Unit(t)
	for what, err := range map[string]error{"volumes": MayUseVolumes(), "quotas": MayUseQuotas("set")} {
		if os.Geteuid() == 0 && err != nil || os.Geteuid() != 0 && (!errors.Is(err, fs.ErrPermission) || fault.ClassOf(err) != fault.Denied) {
			t.Errorf("%s for user %d: %v", what, os.Geteuid(), err)
		}
	}
}

// Targets are checked before anything is made for them.
func TestCheckTargets(t *testing.T) {
	lab.Unit(t)
	h := hosttest.Open(t, "v2", nil, host.Options{})
	v := Volumes{Host: h}
	var root *RootTargetError
	if err := v.checkTargets(t.Context(), []string{"cgroup:/"}); !errors.As(err, &root) || root.Target != "cgroup:/" || fault.ClassOf(err) != fault.WrongUse {
		t.Errorf("the root group: %v", err)
	}
	if err := v.checkTargets(t.Context(), []string{"cgroup:/none"}); fault.ClassOf(err) != fault.NotFound {
		t.Errorf("a group that is not there: %v", err)
	}
	if err := v.checkTargets(t.Context(), []string{"cgroup:/batch", "pid:4711"}); err == nil || !strings.Contains(err.Error(), "a limit applies to the whole group") {
		t.Errorf("a process that shares its group: %v", err)
	}
	if err := v.checkTargets(t.Context(), []string{"cgroup:/batch"}); err != nil {
		t.Errorf("a group: %v", err)
	}
	if err := v.checkTargets(t.Context(), nil); err != nil {
		t.Errorf("no targets: %v", err)
	}
}

// The names of volumes that a shell completes are those that can be read: a broken record takes none away.
func TestNamesOfVolumes(t *testing.T) {
	lab.Unit(t)
	s := volume.Store{Dir: t.TempDir()}
	records := filepath.Join(s.Dir, ".records")
	if err := os.Mkdir(records, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"db": `{"name":"db","mount":"/db","fs":"xfs"}`, "broken": "{", "data": `{"name":"data","mount":"/srv/data","fs":"ext4"}`} {
		if err := os.WriteFile(filepath.Join(records, name+state.Ready), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := namesOf(s); err == nil || !slices.Equal(names, []string{"data", "db"}) {
		t.Errorf("%q, %v", names, err)
	}
}
