package systemd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
)

// service starts a service with settings that lives until the end of the test. It
// returns its unit and its group.
func service(t *testing.T, name string, properties ...string) (unit, group string) {
	t.Helper()
	unit = name + ".service"
	args := []string{"--quiet", "--unit=" + unit}
	for _, p := range properties {
		args = append(args, "-p", p)
	}
	output(t, "systemd-run", append(args, "sleep", "600")...)
	t.Cleanup(func() { output(t, "systemctl", "stop", unit) })
	return unit, "/system.slice/" + unit
}

func property(t *testing.T, unit, name string) string {
	t.Helper()
	return output(t, "systemctl", "show", "-P", name, unit)
}

// systemd keeps an entry for each path of a disk and writes them one after the other. If the
// unit names the disk by another path, weir's limit must be on that path.
func TestSetOnAServiceWithAPathOfItsOwn(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2)
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	for name, path := range map[string]string{"node": disk.Node, "folder": disk.Dir} {
		t.Run(name, func(t *testing.T) {
			unit, group := service(t, "weir-own-"+name, "IOWriteBandwidthMax="+path+" 5M", "IOReadBandwidthMax="+path+" 9M")
			set := []string{"set", "cgroup:" + group, "--quiet", "--write", "1MB/s", "--write-iops", "70", "--on", disk.Node}
			want := fmt.Sprintf("systemd: set IOWriteBandwidthMax=%s 1000000 of %s\nsystemd: set IOWriteIOPSMax=%s 70 of %s", path, unit, path, unit)
			if got := output(t, "weir", append(set, "--dry-run")...); got != want {
				t.Errorf("dry run: %q, want %q", got, want)
			}
			output(t, "weir", set...)
			for _, after := range []string{"set", "daemon-reload"} {
				if got, want := rules(t, e, group), disk.Number.String()+" rbps=9000000 wbps=1000000 riops=max wiops=70"; got != want {
					t.Errorf("after %s the rule is %q, want %q", after, got, want)
				}
				output(t, "systemctl", "daemon-reload")
			}
			output(t, "weir", "clear", "cgroup:"+group, "--quiet")
			output(t, "systemctl", "daemon-reload")
			if got := rules(t, e, group); got != "" {
				t.Errorf("after clear the rule is %q", got)
			}
		})
	}
}

// If weir is killed after systemd took its change and before the end, the next weir takes
// the change back through systemd.
func TestHalfDoneChangeOfAServiceIsTakenBack(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2)
	disk := lab.RawDisk(t)
	unit, group := service(t, "weir-half", "IOWriteBandwidthMax="+disk.Node+" 5M")
	before, after := limit.None.With(limit.WBPS, limit.PerSecond(5e6)), limit.Limit{WBPS: limit.PerSecond(7e6)}
	record, err := json.Marshal(map[string]any{
		"version": 2, "group": group, "unit": unit,
		"rules":    []any{map[string]any{"device": disk.Number, "before": before, "after": after}},
		"settings": []any{map[string]any{"path": disk.Node, "before": before, "after": after}},
	})
	if err != nil {
		t.Fatal(err)
	}
	output(t, "systemctl", "set-property", "--runtime", unit, "IOWriteBandwidthMax="+disk.Node+" 7M")
	// The record comes last: any weir takes back what is on it, also one of a test beside.
	const file = "/run/weir/set.abandoned.json"
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, record, 0o600)); err != nil {
		t.Fatal(err)
	}
	output(t, "weir", "show", "--for", "0")
	if got, want := property(t, unit, "IOWriteBandwidthMax"), disk.Node+" 5000000"; got != want {
		t.Errorf("systemd has %q, want %q", got, want)
	}
	if got, want := rules(t, e, group), writeRule(e, disk, 5e6); got != want {
		t.Errorf("the rule is %q, want %q", got, want)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the record is still there")
	}
}

// A user who may not change units is told so, and nothing changes.
func TestSetOnAServiceAsNobody(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2)
	disk := lab.RawDisk(t)
	_, group := service(t, "weir-root")
	weir, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(weir)
	if err != nil {
		t.Fatal(err)
	}
	copied := "/tmp/weir-for-nobody" // where nobody may start it
	if err := os.WriteFile(copied, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(copied) })
	cmd := exec.Command(copied, "set", "cgroup:"+group, "--write", "1MB/s", "--on", disk.Number.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	_ = cmd.Run() // its status is looked at
	const want = "weir: set limits of unit weir-root.service: permission denied (systemd changes units for root only; run weir as root)"
	if got := strings.TrimSpace(stderr.String()); cmd.ProcessState.ExitCode() != 1 || got != want {
		t.Errorf("weir set: exit code %d, %q; want 1, %s", cmd.ProcessState.ExitCode(), got, want)
	}
	if file := filepath.Join(e.Cgroups.Unified, group, "io.max"); rulesOrNone(t, file) != "" {
		t.Errorf("%s has a rule", file)
	}
}

func rulesOrNone(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}
