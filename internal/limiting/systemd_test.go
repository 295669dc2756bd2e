package limiting

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/daemon/systemd/systemdtest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

const containerScope = "docker-" + containerID + ".scope"

// unitHost is a copy of a host with a systemd, a service and a container's scope. What systemd sets
// comes into force as its rules do.
func unitHost(t *testing.T, name string) (Manager, *systemdtest.Systemd) {
	t.Helper()
	files := map[string]string{"run/systemd/system/x": "",
		"etc/systemd/system.control/x.service.d/50-IOReadIOPSMax.conf": "[Service]\nIOReadIOPSMax=\nIOReadIOPSMax=/data 9\n"}
	for _, unit := range []string{"x.service", containerScope} {
		dir := "sys/fs/cgroup/system.slice/" + unit
		if name == "v1" {
			dir = "sys/fs/cgroup/blkio/system.slice/" + unit
			for _, rate := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
				files[dir+"/blkio.throttle."+rate+"_device"] = ""
			}
		} else {
			maps.Copy(files, map[string]string{dir + "/io.max": "", dir + "/cgroup.controllers": "io pids\n", dir + "/cgroup.type": "domain\n"})
		}
		files[dir+"/cgroup.procs"] = ""
	}
	var s *systemdtest.Systemd
	m := manager(t, name, files, host.Options{
		Program: func() (string, error) { return "/usr/bin/weir", nil },
		Systemd: func(ctx context.Context) (*systemd.Conn, error) { return s.Dial(t)(ctx) }})
	s = systemdtest.New(m.Host.Root)
	s.Rules = func(unit, property, device, rate string) error {
		key := map[string]string{"IOReadBandwidthMax": "rbps", "IOWriteBandwidthMax": "wbps", "IOReadIOPSMax": "riops", "IOWriteIOPSMax": "wiops"}[property]
		return hosttest.Take(filepath.Join(m.Host.Root, "sys/fs/cgroup/system.slice", unit, "io.max"), device+" "+key+"="+rate)
	}
	return m, s
}

// asked are properties that systemd was asked for, as steps are spelled. A slice's description is
// no step.
func asked(all []systemdtest.Asked) (lines []string) {
	for _, a := range all {
		if !strings.HasPrefix(a.Property, "Description=") {
			lines = append(lines, unitLine(a.Unit, a.Property, a.Persist))
		}
	}
	return lines
}

func unitLine(unit, property string, persist bool) string {
	if persist {
		return unit + " for good: " + property
	}
	return unit + ": " + property
}

// What a dry run shows of systemd is what systemd is asked for, what is written beside it, and the
// files that keep limits: of a unit, of a service on cgroup v1, and of a container's scope.
func TestADryRunTellsSystemd(t *testing.T) {
	service := func(m Manager) targets.Target {
		return targets.Target{Kind: "unit", Name: "x.service", Group: hosttest.Group(t, m.Host, "/system.slice/x.service"), Owner: targets.Owner{Kind: "systemd", Name: "x.service", Unit: "x.service"}}
	}
	container := func(m Manager) targets.Target {
		return targets.Target{Kind: "docker", Name: "web", Lasting: "docker:" + containerID, Group: hosttest.Group(t, m.Host, "/system.slice/"+containerScope), Owner: targets.Owner{Kind: "docker", Unit: containerScope}}
	}
	set := func(l limit.Limit, persist bool) func(Manager, targets.Target) (Change, error) {
		return func(m Manager, its targets.Target) (Change, error) {
			return m.PrepareSetOn(t.Context(), its, Request{Asked: onData(l), Persist: persist, Hold: limit.HoldKernel})
		}
	}
	clear := func(m Manager, its targets.Target) (Change, error) {
		return &clearing{m: m, target: its, keeper: keep.Of(m.Host, its, its.Group.Hierarchy().Version)}, nil
	}
	two := wbps(5e6).With(limit.RBPS, limit.PerSecond(7))
	for _, c := range []struct {
		name, host, keeper string
		its                func(Manager) targets.Target
		prepare            []func(Manager, targets.Target) (Change, error) // one after the other
		lines              []int                                           // of each
		alone              map[string]bool                                 // lines of the deed alone
	}{
		{"a unit, until the next boot", "v2", "systemd", service, []func(Manager, targets.Target) (Change, error){set(two, false), set(wbps(6e6), false)}, []int{2, 1}, nil},
		// What is cleared of what is kept is lifted until the next boot as well: the unit's own file may set a limit.
		{"a unit", "v2", "systemd", service, []func(Manager, targets.Target) (Change, error){set(two, true), set(wbps(6e6), true), clear}, []int{2, 1, 3},
			map[string]bool{"x.service: IOWriteBandwidthMax=/data infinity": true, "x.service: IOReadBandwidthMax=/data infinity": true}},
		{"a service, v1", "v1", "systemd", service, []func(Manager, targets.Target) (Change, error){set(two, true), set(wbps(6e6), true), clear}, []int{5, 4, 3}, nil},
		{"a container's scope", "v2", "systemd", container, []func(Manager, targets.Target) (Change, error){set(two, true), set(wbps(6e6), true), clear}, []int{3, 2, 3}, nil},
	} {
		m, s := unitHost(t, c.host)
		var log []string
		logged(t, m, &log)
		for i, prepare := range c.prepare {
			its := c.its(m)
			if by := keep.Of(m.Host, its, its.Group.Hierarchy().Version).By(); by != c.keeper {
				t.Errorf("%s: %s keeps it", c.name, by)
			}
			change, err := prepare(m, its)
			if err != nil {
				t.Fatalf("%s, %d: %v", c.name, i, err)
			}
			preview, err := change.Steps(t.Context())
			if err != nil {
				t.Fatalf("%s, %d: %v", c.name, i, err)
			}
			if early := s.Asked(); log != nil || early != nil {
				t.Errorf("%s, %d: a dry run did %q, %+v", c.name, i, log, early)
			}
			var shown []string
			for _, step := range preview.Steps {
				if step.Unit != "" {
					shown = append(shown, unitLine(step.Unit, step.Property, step.Persist))
				} else {
					shown = append(shown, step.File+" "+step.Line)
				}
			}
			before := files(t, m.Host.Root)
			if change, err = prepare(m, its); err != nil {
				t.Fatalf("%s, %d: %v", c.name, i, err)
			}
			do(t, change, nil)
			all := slices.DeleteFunc(append(log, asked(s.Asked())...), func(line string) bool { return c.alone[line] })
			for _, w := range did(&hosttest.Kernel{}, m.Host.Root, before, files(t, m.Host.Root)) {
				own := strings.Contains(w.file, "/system.control/") // systemd's: it stores each property itself, and one that is lifted goes
				if line := w.file + " " + w.line; !own || w.line == "" && slices.Contains(shown, line) {
					all = append(all, line)
				}
			}
			slices.Sort(all)
			slices.Sort(shown)
			if !slices.Equal(all, shown) || len(shown) != c.lines[i] {
				t.Errorf("%s, %d: did\n%s\nshown\n%s", c.name, i, strings.Join(all, "\n"), strings.Join(shown, "\n"))
			}
			if rules, err := its.Group.RulesIfAny(); err != nil || i < 2 != slices.ContainsFunc(rules, func(r cgroupfs.Rule) bool { return r.Limit.Bounds() }) {
				t.Errorf("%s, %d: in force are %+v, %v", c.name, i, rules, err)
			}
			log = nil
		}
	}
}
