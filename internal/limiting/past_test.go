package limiting

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/daemon/systemd/systemdtest"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/targets"
)

// volumesHost is a unitHost with two logical volumes on vdb, 254:16.
func volumesHost(t *testing.T) (m Manager, s *systemdtest.Systemd, log *[]string) {
	t.Helper()
	m, s = unitHost(t, "v2")
	hosttest.Volume(t, m.Host.Root, "dm-0", "253:0", "vdb")
	hosttest.Volume(t, m.Host.Root, "dm-1", "253:1", "vdb")
	log = new([]string)
	logged(t, m, log)
	return m, s, log
}

func serviceOf(t *testing.T, m Manager) targets.Target {
	t.Helper()
	return targets.Target{Kind: "unit", Name: "x.service", Group: hosttest.Group(t, m.Host, "/system.slice/x.service"), Owner: targets.Owner{Kind: "systemd", Name: "x.service", Unit: "x.service"}}
}

// systemd would limit the disk of a logical volume, with all other volumes on it. weir writes the limit of a volume
// itself, has systemd leave the unit the io controller, and touches no limit of the disk; and the other way round.
func TestAVolumeIsLimitedAndNotItsDisk(t *testing.T) {
	m, s, log := volumesHost(t)
	for i, c := range []struct {
		on    string
		write uint64 // 0: clear
		asked []string
		rules string
		lost  bool
	}{
		{"254:16", 9e6, []string{"x.service: IOWriteBandwidthMax=/dev/block/254:16 9000000"}, "254:16 9000000", false},
		{"253:0", 5e6, []string{"x.service: IOAccounting=true"}, "253:0 5000000, 254:16 9000000", true},
		{"253:1", 6e6, []string{"x.service: IOAccounting=true"}, "253:0 5000000, 253:1 6000000, 254:16 9000000", true},
		{"254:16", 8e6, []string{"x.service: IOWriteBandwidthMax=/dev/block/254:16 8000000"}, "253:0 5000000, 253:1 6000000, 254:16 8000000", false},
		{"253:0", 0, nil, "253:1 6000000, 254:16 8000000", false},
		{"254:16", 0, []string{"x.service for good: IOWriteBandwidthMax=/dev/block/254:16 infinity", "x.service: IOWriteBandwidthMax=/dev/block/254:16 infinity"}, "253:1 6000000", false},
	} {
		its := serviceOf(t, m)
		prepare := func() Change {
			if c.write == 0 {
				only, err := m.Host.DevicesOf(t.Context(), []string{c.on})
				if err != nil {
					t.Fatal(err)
				}
				return &clearing{m: m, target: its, keeper: keep.Of(m.Host, its, its.Group.Hierarchy().Version), on: true, only: only}
			}
			change, err := m.PrepareSetOn(t.Context(), its, Request{Asked: []limit.Asked{{On: c.on, Limit: wbps(c.write)}}, Hold: limit.HoldKernel})
			if err != nil {
				t.Fatal(err)
			}
			return change
		}
		preview, err := prepare().Steps(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var shown []string
		for _, step := range preview.Steps {
			if step.Unit != "" {
				shown = append(shown, unitLine(step.Unit, step.Property, step.Persist))
			} else {
				shown = append(shown, step.File+" "+step.Line)
			}
		}
		r, err := prepare().Apply(t.Context())
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		all := asked(s.Asked())
		if !slices.Equal(all, c.asked) {
			t.Errorf("%d: systemd was asked for %q, want %q", i, all, c.asked)
		}
		all = slices.DeleteFunc(append(all, *log...), func(line string) bool { return line == "x.service: IOWriteBandwidthMax=/dev/block/254:16 infinity" }) // see TestADryRunTellsSystemd
		slices.Sort(all)
		slices.Sort(shown)
		if !slices.Equal(all, shown) {
			t.Errorf("%d: did %q, shown %q", i, all, shown)
		}
		if got := writeRules(t, its); got != c.rules {
			t.Errorf("%d: in force are %s, want %s", i, got, c.rules)
		}
		lost := slices.ContainsFunc(r.Notes, func(n note.Note) bool {
			return n.Code == "lost-at-restart" && n.Remedy.Do == fault.SetByPlan && strings.Contains(n.Text, "/dev/mapper/vg0-dm-") && strings.Contains(n.Text, "x.service")
		})
		if lost != c.lost {
			t.Errorf("%d: told %+v", i, r.Notes)
		}
		*log = nil
	}
}

// What systemd keeps over boots under a volume's name stays kept, if the disk gets another limit until the next boot.
func TestALimitUnderAVolumesNameStaysKept(t *testing.T) {
	for _, path := range []string{"/dev/mapper/vg0-dm-0", "/dev/block/253:0"} {
		m, s, _ := volumesHost(t)
		conn, err := m.Host.Systemd(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.Set(t.Context(), "x.service", true, systemd.IOLimitAt(path, wbps(5e6))); err != nil {
			t.Fatal(err)
		}
		s.Asked()
		its := serviceOf(t, m)
		if got, want := writeRules(t, its), "254:16 5000000"; got != want {
			t.Fatalf("%s: in force are %s, want %s", path, got, want)
		}
		change, err := m.PrepareSetOn(t.Context(), its, Request{Asked: []limit.Asked{{On: "254:16", Limit: limit.Limit{RBPS: limit.PerSecond(3e6)}}}, Hold: limit.HoldKernel})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := change.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(filepath.Join(m.Host.Root, "etc/systemd/system.control/x.service.d/50-IOWriteBandwidthMax.conf"))
		if line := "IOWriteBandwidthMax=" + path + " 5000000\n"; err != nil || !strings.Contains(string(kept), line) {
			t.Errorf("systemd keeps %q, %v; want %q. It was asked for %q", kept, err, line, asked(s.Asked()))
		}
		if got, want := writeRules(t, its), "254:16 5000000"; got != want {
			t.Errorf("%s: in force are %s, want %s", path, got, want)
		}
	}
}

func writeRules(t *testing.T, its targets.Target) string {
	t.Helper()
	rules, err := its.Group.Rules()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range rules {
		n, _ := r.Limit.WBPS.Number()
		all = append(all, fmt.Sprintf("%s %d", r.Device, n))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// What nobody would set on the volume again is refused, of a unit and of a container's scope, before anything changes.
func TestAVolumesLimitIsNotKeptOnItsDisk(t *testing.T) {
	m, s, log := volumesHost(t)
	container := targets.Target{Kind: "docker", Name: "web", Lasting: "docker:" + containerID, Group: hosttest.Group(t, m.Host, "/system.slice/"+containerScope), Owner: targets.Owner{Kind: "docker", Unit: containerScope}}
	for _, its := range []targets.Target{serviceOf(t, m), container} {
		before := files(t, m.Host.Root)
		change, err := m.PrepareSetOn(t.Context(), its, Request{Asked: []limit.Asked{{On: "253:0", Limit: wbps(5e6)}}, Hold: limit.HoldKernel, Persist: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, do := range []func() error{
			func() error { _, err := change.Steps(t.Context()); return err },
			func() error { _, err := change.Apply(t.Context()); return err },
		} {
			var refused *keep.Refused
			if err := do(); !errors.As(err, &refused) || refused.Kind != fault.NotPossible || !strings.Contains(refused.Why, "/dev/mapper/vg0-dm-0") || refused.Remedy.Do != fault.KeepByPlan {
				t.Errorf("%s: %v", its, err)
			}
		}
		if all := s.Asked(); all != nil || *log != nil {
			t.Errorf("%s: did %+v, %q", its, all, *log)
		}
		for file, text := range files(t, m.Host.Root) {
			if before[file] != text && !strings.HasPrefix(file, filepath.Join(m.Host.Root, "run/weir")) && !strings.HasPrefix(file, filepath.Join(m.Host.Root, "var/lib/weir")) {
				t.Errorf("%s: wrote %s: %q", its, file, text)
			}
		}
	}
}
