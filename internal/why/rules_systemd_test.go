package why

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/cgroupfs"
)

// A limit that systemd may end is told, with the command that has it stay.
func TestALimitThatSystemdMayLift(t *testing.T) {
	for version, says := range map[cgroupfs.Version]string{cgroupfs.V2: "io controller", cgroupfs.V1: "moves processes out"} {
		f := good()
		f.Group.Version, f.Group.Loose = version, &Loose{"system.slice", "system-weir.slice"}
		found, ok := Judge(f).Find("systemd-may-lift")
		if !ok || found.Severity != Hurts || !strings.Contains(found.Text, says) || !strings.Contains(found.Text, "in system.slice") {
			t.Fatalf("v%d: %+v", version, found)
		}
		if got, want := found.Fixes[0].Lines, "weir set cgroup:/x --write 10000000 --on /dev/vda"; len(got) != 1 || got[0] != want {
			t.Errorf("v%d: the fix is %q, want %q", version, got, want)
		}
		if got, want := found.Evidence[len(found.Evidence)-1].File, "systemctl is-active system-weir.slice"; got != want {
			t.Errorf("v%d: the evidence is %q, want %q", version, got, want)
		}
	}
}
