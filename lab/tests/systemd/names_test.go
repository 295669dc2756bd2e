package systemd_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// names are what systemd can know a disk under, each of which it keeps an entry for.
func names(t *testing.T, disk *lab.TestDisk) map[string]string {
	t.Helper()
	const byID = "/dev/disk/by-id"
	link := filepath.Join(byID, "weir-test-"+filepath.Base(disk.Node))
	if err := errors.Join(os.MkdirAll(byID, 0o755), os.Symlink(disk.Node, link)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(link) })
	return map[string]string{"node": disk.Node, "number": "/dev/block/" + disk.Number.String(), "link": link, "folder": disk.Dir}
}

// systemd has a rate for one disk under two names, and weir sets a third rate. None is lost,
// whichever name systemd writes last.
func TestNamesOfOneDisk(t *testing.T) {
	lab.Need(t, lab.Systemd, lab.V2)
	disk := lab.Disk(t, lab.FS("ext4"))
	all := names(t, disk)
	for i, pair := range [][2]string{{"number", "node"}, {"link", "folder"}, {"node", "number"}, {"folder", "link"},
		{"node", "link"}, {"link", "node"}, {"node", "folder"}, {"folder", "node"}, {"number", "link"}, {"link", "number"}, {"number", "folder"}, {"folder", "number"}} {
		t.Run(pair[0]+" and "+pair[1], func(t *testing.T) {
			needs := []lab.Requirement{lab.Systemd, lab.V2}
			if i > 0 {
				needs = append(needs, lab.Whole)
			}
			lab.Need(t, needs...)
			twoNames(t, disk, fmt.Sprintf("weir-names%d", i), all[pair[0]], all[pair[1]])
		})
	}
}

func twoNames(t *testing.T, disk *lab.TestDisk, name, first, second string) {
	e := lab.Here(t)
	unit := unitFile(t, name, "/bin/sleep 600")
	group := "/system.slice/" + unit
	const written, read, ops = "IOWriteBandwidthMax", "IOReadBandwidthMax", "IOReadIOPSMax"
	output(t, "systemctl", "set-property", "--runtime", unit, written+"="+first+" 10M")
	output(t, "systemctl", "set-property", "--runtime", unit, read+"="+second+" 3M")
	if got := why(t, unit, disk); !strings.Contains(got, `"unit-conflict"`) {
		t.Errorf("why finds no conflict of %s and %s: %s", first, second, got)
	}
	if got := output(t, "weir", "show", "--for", "0", "unit:"+unit); !strings.Contains(got, "on "+first+", which has another name") || !strings.Contains(got, "on "+second+", which has another name") {
		t.Errorf("weir show has not both names:\n%s", got)
	}
	said, err := exec.Command("weir", "set", "unit:"+unit, "--read-iops", "500", "--on", disk.Node).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "a second name of the same device") {
		t.Errorf("weir set: %v, %s", err, said)
	}
	want := disk.Number.String() + " rbps=3000000 wbps=10000000 riops=500 wiops=max"
	for _, after := range []string{"set", "daemon-reload", "restart", "another limit"} {
		switch after {
		case "daemon-reload":
			output(t, "systemctl", "daemon-reload")
		case "restart":
			output(t, "systemctl", "restart", unit)
		case "another limit":
			output(t, "systemctl", "set-property", "--runtime", unit, "CPUWeight=50", "IOWeight=50")
		}
		if got := rules(t, e, group); got != want {
			t.Errorf("after %s the rule is %q, want %q", after, got, want)
		}
		for _, p := range []string{written, read, ops} {
			if got := strings.Fields(property(t, unit, p)); len(got) != 2 {
				t.Errorf("after %s systemd keeps %s=%q, want one name", after, p, got)
			}
		}
	}
	if got := why(t, unit, disk); strings.Contains(got, `"unit-conflict"`) || strings.Contains(got, `"unit-differs"`) {
		t.Errorf("after set why finds a conflict: %s", got)
	}
	// What systemd gives up is nobody's if the kernel still has it.
	output(t, "systemctl", "revert", unit)
	if got := rules(t, e, group); got != "" {
		if found := why(t, unit, disk); !strings.Contains(found, "nobody keeps") || !strings.Contains(found, "weir clear unit:"+unit) {
			t.Errorf("after revert the rule is %q, and why says %s", got, found)
		}
	}
	if got := output(t, "weir", "show", "--for", "0", "unit:"+unit); !strings.Contains(got, "systemd keeps no limit") {
		t.Errorf("after revert weir show says\n%s", got)
	}
	output(t, "weir", "clear", "unit:"+unit, "--quiet")
	noRule(t, e, group, "clear")
}

// why is what weir why finds of a unit, as JSON.
func why(t *testing.T, unit string, disk *lab.TestDisk) string {
	t.Helper()
	text, err := exec.Command("weir", "why", "unit:"+unit, "--json", "--on", disk.Node).Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // its status says whether all is held
		t.Fatal(err)
	}
	return string(text)
}

// The name under which a limit is saved means the same disk after the next boot.
func TestPersistentNames(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2)
	disk := lab.Disk(t, lab.FS("ext4"))
	unit := unitFile(t, "weir-lasting", "/bin/sleep 600")
	group := "/system.slice/" + unit
	output(t, "systemctl", "set-property", unit, "IOReadBandwidthMax="+disk.Node+" 3M")
	for _, name := range []string{"folder", "link"} {
		path := disk.Dir
		if name == "link" {
			output(t, "weir", "clear", "unit:"+unit, "--quiet")
			output(t, "systemctl", "set-property", unit, "IOReadBandwidthMax="+disk.Node+" 3M")
			path = names(t, disk)["link"]
		}
		output(t, "weir", "set", "unit:"+unit, "--quiet", "--write", "4MB/s", "--on", disk.Node, "--persist")
		forget(t, unit)
		if got, want := rules(t, e, group), disk.Number.String()+" rbps=3000000 wbps=4000000 riops=max wiops=max"; got != want {
			t.Errorf("%s: after a boot the rule is %q, want %q", name, got, want)
		}
		for _, p := range []string{"IOReadBandwidthMax", "IOWriteBandwidthMax"} {
			if got := strings.Fields(property(t, unit, p)); len(got) != 2 || got[0] != path {
				t.Errorf("%s: systemd keeps %s=%q, want it on %s", name, p, got, path)
			}
		}
	}
}
