package systemd_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// weir sets a rate of a unit, systemd gets another one, and weir sets a third, each under any name of
// the disk. Between them systemd reads its settings again, starts the unit again, or drops them.
// weir takes no rate away. What systemd itself takes away, weir show does not show, and weir why
// names the conflict.
func TestOrdersOfNames(t *testing.T) {
	lab.Need(t, lab.Systemd, lab.V2)
	disk := lab.Disk(t, lab.FS("ext4"))
	all := names(t, disk)
	n := 0
	told := []string{"node", "folder", "link", "number"} // by which weir is told of the disk
	for _, own := range told[:min(len(told), lab.Times(t, "WEIR_ORDERS", 1))] {
		on := all[own]
		if own == "number" {
			on = disk.Number.String()
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for _, between := range []string{"daemon-reload", "", "restart", "revert"} {
				t.Run(strings.TrimSuffix(own+", then "+name+" after "+between, " after "), func(t *testing.T) {
					needs := []lab.Requirement{lab.Systemd, lab.V2}
					if n > 0 {
						needs = append(needs, lab.Whole)
					}
					lab.Need(t, needs...)
					weirFirst(t, disk, fmt.Sprintf("weir-orders%d", n), on, all[name], between)
				})
				n++
			}
		}
	}
}

func weirFirst(t *testing.T, disk *lab.TestDisk, name, on, as, between string) {
	e := lab.Here(t)
	unit := unitFile(t, name, "/bin/sleep 600")
	group, target := "/system.slice/"+unit, "unit:"+unit
	then := func() {
		switch between {
		case "daemon-reload":
			output(t, "systemctl", "daemon-reload")
		case "restart", "revert":
			output(t, "systemctl", between, unit)
		}
	}
	output(t, "weir", "set", target, "--quiet", "--write", "10MB/s", "--on", on)
	then()
	wbps := "10000000"
	if between == "revert" { // that takes it away
		wbps = "max"
	}
	output(t, "systemctl", "set-property", "--runtime", unit, "IOReadBandwidthMax="+as+" 3M")
	truth(t, e.Cgroups.Unified+group, target)
	two := property(t, unit, "IOWriteBandwidthMax") != "" && strings.Fields(property(t, unit, "IOWriteBandwidthMax"))[0] != as
	if got := strings.Contains(why(t, unit, disk), `"unit-conflict"`); got != two {
		t.Errorf("systemd has the disk under two names: %t; why finds a conflict: %t", two, got)
	}
	if between != "revert" {
		then()
		truth(t, e.Cgroups.Unified+group, target)
	}
	output(t, "weir", "set", target, "--quiet", "--read-iops", "500", "--on", on)
	want := fmt.Sprintf("%s rbps=3000000 wbps=%s riops=500 wiops=max", disk.Number, wbps)
	for _, after := range []string{"set", "daemon-reload", "restart"} {
		if after != "set" {
			output(t, "systemctl", strings.Fields(after+" "+map[string]string{"restart": unit}[after])...)
		}
		if got := rules(t, e, group); got != want {
			t.Errorf("after %s the rule is %q, want %q", after, got, want)
		}
		truth(t, e.Cgroups.Unified+group, target)
	}
	if got := why(t, unit, disk); strings.Contains(got, `"unit-conflict"`) || strings.Contains(got, `"unit-differs"`) {
		t.Errorf("after the last set why finds a conflict: %s", got)
	}
	output(t, "weir", "clear", target, "--quiet")
	noRule(t, e, group, "clear")
}

// truth holds what weir show says is in force against the kernel's file.
func truth(t *testing.T, dir, target string) {
	t.Helper()
	var doc struct {
		Groups []struct {
			Devices []struct {
				Number string
				Limit  struct{ RBPS, WBPS, RIOPS, WIOPS any }
			}
		}
	}
	if err := json.Unmarshal([]byte(output(t, "weir", "show", target, "--for", "0", "--json")), &doc); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, g := range doc.Groups {
		for _, d := range g.Devices {
			word := func(rate any) string {
				switch rate := rate.(type) {
				case float64:
					return fmt.Sprintf("%.0f", rate)
				case string:
					return rate
				}
				return "max"
			}
			lines = append(lines, fmt.Sprintf("%s rbps=%s wbps=%s riops=%s wiops=%s", d.Number, word(d.Limit.RBPS), word(d.Limit.WBPS), word(d.Limit.RIOPS), word(d.Limit.WIOPS)))
		}
	}
	if got, want := strings.Join(lines, "\n"), strings.TrimSpace(rulesOrNone(t, dir+"/io.max")); got != want {
		t.Errorf("weir show says %q, and the kernel's file %q", got, want)
	}
}
