package unit

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/targets"
)

// manager is a systemd that knows some units.
type manager map[string]systemd.Unit

func (m manager) Unit(_ context.Context, name string) (systemd.Unit, error) {
	u, known := m[name]
	if !known {
		u = systemd.Unit{Name: name, Load: "not-found", Active: "inactive"}
	}
	return u, nil
}

func (manager) Close() error { return nil }

func kind(t *testing.T, version cgroupfs.Version, groups ...string) Kind {
	t.Helper()
	files := map[string]string{}
	for _, g := range groups {
		files[cgrouptest.V2Dir+g+"/cgroup.procs"] = ""
	}
	h := cgrouptest.New(t, version, files)
	m := manager{
		"web.service":    {Name: "nginx.service", Load: "loaded", Active: "active", Cgroup: "/system.slice/nginx.service"},
		"idle.service":   {Name: "idle.service", Load: "loaded", Active: "inactive"},
		"once.service":   {Name: "once.service", Load: "loaded", Active: "active"},
		"masked.service": {Name: "masked.service", Load: "masked", Active: "inactive"},
		"bad.service":    {Name: "bad.service", Load: "bad-setting", Active: "inactive", Error: "Unit bad.service has a bad unit file setting."},
		`a\x2db.service`: {Name: `a\x2db.service`, Load: "loaded", Active: "inactive"},
		"gone.service":   {Name: "gone.service", Load: "loaded", Active: "deactivating", Cgroup: "/system.slice/gone.service"},
		"evil.service":   {Name: "evil.service", Load: "loaded", Active: "active", Cgroup: "/system.slice/../../../etc"},
		"-.slice":        {Name: "-.slice", Load: "loaded", Active: "active", Cgroup: "/"},
	}
	return Kind{Hierarchy: h.IO, SystemdRuns: true, Connect: func(context.Context) (Manager, error) { return m, nil }}
}

func TestUnitsByTheirNames(t *testing.T) {
	k := kind(t, cgroupfs.V2, "/system.slice/nginx.service")
	for name, want := range map[string][2]string{"web": {"unit:nginx.service", "systemd"}, "web.service": {"unit:nginx.service", "systemd"}, "-.slice": {"unit:-.slice", "kernel"}} {
		got, err := k.Resolve(t.Context(), name)
		if err != nil || got.String() != want[0] || got.Owner.Kind != want[1] {
			t.Errorf("Resolve(%s) = %v of %v, %v; want %v", name, got, got.Owner, err, want)
		}
	}
}

func TestUnitsThatCannotBeLimited(t *testing.T) {
	k := kind(t, cgroupfs.V2)
	for name, want := range map[string]string{
		"none":   "unit:none.service: systemd knows no such unit; systemctl list-units shows all that it knows",
		"idle":   "unit:idle.service: it is not running (inactive), so it has no cgroup to limit; systemctl start idle.service",
		`a\x2db`: `unit:a\x2db.service: it is not running (inactive), so it has no cgroup to limit; systemctl start 'a\x2db.service'`, // which a shell reads as it is
		"once":   "unit:once.service: it is active, but has no process and no cgroup to limit",
		"masked": "unit:masked.service: it is masked, and cannot run; systemctl unmask masked.service",
		"bad":    "unit:bad.service: systemd could not load it (bad-setting): Unit bad.service has a bad unit file setting.; systemctl status bad.service",
		"gone":   "unit:gone.service: systemd says its cgroup is /system.slice/gone.service, but /sys/fs/cgroup has no such group; try again if the unit is just stopping",
	} {
		_, err := k.Resolve(t.Context(), name)
		var notFound *targets.NotFound
		if !errors.As(err, &notFound) || err.Error() != want {
			t.Errorf("Resolve(%s): %v, want %s", name, err, want)
		}
	}
	if got, err := k.Resolve(t.Context(), "evil"); err == nil {
		t.Errorf("Resolve(evil) = %v, which is outside the hierarchy", got.Group.Dir())
	}
}

func TestAUnitWithoutAGroupOnV1(t *testing.T) {
	k := kind(t, cgroupfs.V1)
	_, err := k.Resolve(t.Context(), "web")
	var none *NoGroupError
	if !errors.As(err, &none) || none.Unit != "nginx.service" {
		t.Errorf("Resolve(web): %v, want a *NoGroupError", err)
	}
}

func TestASystemdThatDoesNotAnswer(t *testing.T) {
	k := kind(t, cgroupfs.V2)
	down := errors.New("connection refused")
	k.Connect = func(context.Context) (Manager, error) { return nil, down }
	if _, err := k.Resolve(t.Context(), "web"); !errors.Is(err, down) {
		t.Errorf("Resolve: %v, want %v", err, down)
	}
	k.SystemdRuns = false
	var none *targets.NoKindError
	if _, err := k.Resolve(t.Context(), "web"); !errors.As(err, &none) || !fault.IsUnsupported(err) {
		t.Errorf("Resolve without systemd: %v, want a *targets.NoKindError", err)
	}
}
