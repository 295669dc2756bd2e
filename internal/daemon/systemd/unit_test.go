package systemd

import (
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

func TestUnitOfPath(t *testing.T) {
	for path, want := range map[string]string{
		"/system.slice/cron.service":          "cron.service",
		"/system.slice":                       "system.slice",
		"/user.slice/user-0.slice/x.scope":    "x.scope",
		"/system.slice/x.service/inner":       "",
		"/system.slice/dev-hugepages.mount":   "dev-hugepages.mount",
		"/system.slice/_cgroup.procs.service": "cgroup.procs.service", // escaped by systemd
		"/system.slice/getty@tty1.service":    "getty@tty1.service",
		"/system.slice/a\\x2db.service":       "a\\x2db.service",
		"/.service":                           "",
		"/":                                   "",
		"/batch":                              "",
		"/docker/3f2a":                        "",
	} {
		got, ok := UnitOfPath(path)
		if got != want || ok != (want != "") {
			t.Errorf("UnitOfPath(%q) = %q, %t; want %q", path, got, ok, want)
		}
	}
}

func TestIOLimit(t *testing.T) {
	dev := blkdev.Number{Major: 8, Minor: 16}
	spell := func(settings []Setting) []string {
		var s []string
		for _, each := range settings {
			s = append(s, each.String())
		}
		return s
	}
	all := limit.Limit{RBPS: limit.PerSecond(1), WBPS: limit.PerSecond(2), RIOPS: limit.PerSecond(3), WIOPS: limit.Unlimited}
	want := []string{"IOReadBandwidthMax=/dev/block/8:16 1", "IOWriteBandwidthMax=/dev/block/8:16 2", "IOReadIOPSMax=/dev/block/8:16 3", "IOWriteIOPSMax=/dev/block/8:16 infinity"}
	if got := spell(IOLimit(dev, all)); !reflect.DeepEqual(got, want) {
		t.Errorf("IOLimit = %q, want %q", got, want)
	}
	if got := IOLimit(dev, limit.Limit{}); len(got) != 0 {
		t.Errorf("IOLimit of nothing = %q", spell(got))
	}
	// systemd takes a list of (path, rate) for each of the four.
	if got := IOLimit(dev, all)[0].Value.Signature().String(); got != "a(st)" {
		t.Errorf("signature %s, want a(st)", got)
	}
	for want, s := range map[string]Setting{"MemoryMax=67108864": MemoryMax(64 << 20), "MemoryLimit=1": MemoryLimit(1), "IOAccounting=true": Accounting("IO")} {
		if s.String() != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
}

func TestRunningLooksBelowTheRoot(t *testing.T) {
	if Running(t.TempDir()) {
		t.Error("systemd runs in an empty directory")
	}
}

func TestSliceOf(t *testing.T) {
	for path, want := range map[string]string{
		"/user.slice/user-1000.slice/session-3.scope":                     "user-1000.slice",
		"/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope": "user-1000.slice",
		"/system.slice/ssh.service":                                       "system.slice",
		"/init.scope":                                                     "",
		"/":                                                               "",
	} {
		if got := SliceOf(path); got != want {
			t.Errorf("SliceOf(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestUnitsOfOtherManagersAreNotThisOnes(t *testing.T) {
	for path, want := range map[string]bool{
		"/system.slice/x.service":                     true,
		"/init.scope":                                 true,
		"/user.slice/user-1000.slice/session-3.scope": true,
		"/user.slice/user-1000.slice/user@1000.service/app.slice/x.service":   false,
		"/machine.slice/machine-c.scope/system.slice/x.service":               false,
		"/system.slice/docker-c.scope/system.slice/x.service":                 false,
		"/user.slice/user-1000.slice/user@1000.service/app.slice/app-a.slice": false,
	} {
		if _, ok := UnitOfPath(path); ok != want {
			t.Errorf("UnitOfPath(%q): %v, want %v", path, ok, want)
		}
	}
}

func TestIsBelowUnit(t *testing.T) {
	for cgroup, want := range map[string]bool{
		"/": true, "/system.slice/x.service": true, "/init.scope": true, "/system.slice/x.service/inner": true,
		"/docker/3f2a": false, "/batch": false, "/default/web.service": false,
	} {
		if IsBelowUnit(cgroup) != want {
			t.Errorf("%s: %t", cgroup, !want)
		}
	}
}

func TestIsBesideUnits(t *testing.T) {
	for cgroup, want := range map[string]bool{
		"/batch": true, "/system.slice/batch": true, "/a.slice/a-b.slice/batch": true,
		"/docker/3f2a": false, "/system.slice/docker/3f2a": false, "/system.slice/x.service": false, "/system.slice/x.service/inner": false,
		"/user.slice/user-1000.slice/user@1000.service/app.slice/x": false, "/init.scope/x": false, "/system.slice": false, "/": false,
	} {
		if IsBesideUnits(cgroup) != want {
			t.Errorf("%s: %t", cgroup, !want)
		}
	}
}

func TestLoosens(t *testing.T) {
	for cgroup, want := range map[string][2]string{ // on v1, and on v2
		"/batch": {"system.slice", "-.slice"}, "/docker/3f2a": {"system.slice", ""}, "/system.slice/batch": {"", "system.slice"},
		"/a.slice/a-b.slice/batch": {"", "a-b.slice"}, "/system.slice/x.service": {"", ""}, "/": {"", ""},
	} {
		if got := [2]string{Loosens(true, cgroup), Loosens(false, cgroup)}; got != want {
			t.Errorf("%s: %q, want %q", cgroup, got, want)
		}
	}
}

func TestSlicePath(t *testing.T) {
	for slice, want := range map[string]string{
		"system.slice": "/system.slice", "a-b-c.slice": "/a.slice/a-b.slice/a-b-c.slice", "-.slice": "/", "weir.slice": "/weir.slice",
	} {
		if got := SlicePath(slice); got != want {
			t.Errorf("SlicePath(%s) = %s, want %s", slice, got, want)
		}
	}
	for slice, want := range map[string]string{"-.slice": "weir.slice", "system.slice": "system-weir.slice", "user-0.slice": "user-0-weir.slice"} {
		if got := AnchorOf(slice); got != want {
			t.Errorf("AnchorOf(%q) = %s, want %s", slice, got, want)
		}
	}
}
