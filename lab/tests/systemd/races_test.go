package systemd_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/weir-io/weir/lab"
)

// A limit of a unit is set twice at once: by weir, and by weir for the unit's group, by systemctl
// or by a write to the kernel's file. The rule in force is one of the two, and a weir that ended
// with 0 had its rule in force.
func TestTwoAtOnceOnAUnit(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2)
	disk := lab.RawDisk(t)
	unit := unitFile(t, "weir-races", "/bin/sleep 600")
	group := "/system.slice/" + unit
	const first, second = 2_000_000, 1_000_000
	weir := func(target string, rate int) []string {
		return []string{"weir", "set", "-q", target, "--write", fmt.Sprint(rate), "--on", disk.Node}
	}
	rule := func(rate int) string {
		return fmt.Sprintf("%s rbps=max wbps=%d riops=max wiops=max", disk.Number, rate)
	}
	output(t, "weir", weir("unit:"+unit, first)[1:]...)
	for _, other := range []struct {
		name   string
		args   []string
		theirs bool // not weir's lock: weir may find that rule in force, and say so
	}{
		{"weir on the unit", weir("unit:"+unit, second), false},
		{"weir on its group", weir("cgroup:"+group, second), false},
		{"systemctl", []string{"systemctl", "set-property", "--runtime", unit, fmt.Sprintf("IOWriteBandwidthMax=%s %d", disk.Node, second)}, true},
		{"the kernel's file", []string{"sh", "-c", fmt.Sprintf("echo '%s wbps=%d' > %s", disk.Number, second, e.Cgroups.Unified+group+"/io.max")}, true},
	} {
		t.Run(other.name, func(t *testing.T) {
			told := 0
			rounds := lab.Times(t, "WEIR_RACES", 3)
			for i := range rounds {
				var both sync.WaitGroup
				var said [2][]byte
				var errs [2]error
				for j, args := range [][]string{weir("unit:"+unit, first), other.args} {
					both.Go(func() { said[j], errs[j] = exec.Command(args[0], args[1:]...).CombinedOutput() })
				}
				both.Wait()
				text, err := os.ReadFile(e.Cgroups.Unified + group + "/io.max")
				now := strings.TrimSpace(string(text))
				switch {
				case err != nil || now != rule(first) && now != rule(second):
					t.Fatalf("round %d: the rule is %q, %v; %s%s", i, now, err, said[0], said[1])
				case errs[1] != nil, errs[0] != nil && (!other.theirs || now != rule(second)):
					t.Fatalf("round %d: %v %s; %v %s; the rule is %q", i, errs[0], said[0], errs[1], said[1], now)
				case errs[0] != nil:
					told++
				}
			}
			t.Logf("%d rounds; in %d of them weir said that another program's rule was in force", rounds, told)
		})
	}
}
