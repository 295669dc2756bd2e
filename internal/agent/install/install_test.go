package install

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-io/weir/contrib"
	"github.com/weir-io/weir/lab"
)

// A host has groups and a systemd of its own.
type host struct {
	System
	t      *testing.T
	groups map[string]bool
	ran    []string
	told   []string
	fails  string // how the command that fails begins
	isNot  string // "is-enabled" or "is-active": what the unit is not
}

func newHost(t *testing.T) *host {
	t.Helper()
	lab.Unit(t)
	h := &host{t: t, groups: map[string]bool{}}
	h.System = System{Root: t.TempDir(), Program: "/opt/weir/weird", HasGroup: func(name string) bool { return h.groups[name] }, IsUp: func() bool { return true },
		Run: func(_ context.Context, words ...string) error {
			line := strings.Join(words, " ")
			h.ran = append(h.ran, line)
			if h.isNot != "" && strings.Contains(line, h.isNot) {
				return errors.New("it is not")
			}
			if h.fails != "" && strings.HasPrefix(line, h.fails) {
				return errors.New("it fails")
			}
			switch words[0] {
			case "groupadd":
				h.groups[words[2]] = true
			case "groupdel":
				delete(h.groups, words[1])
			}
			return nil
		}}
	if err := os.MkdirAll(filepath.Dir(h.at(Unit)), 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) tell(what string) { h.told = append(h.told, what) }

func (h *host) install(dry bool) error {
	h.ran, h.told = nil, nil
	return h.Install(h.t.Context(), dry, h.tell)
}

func (h *host) uninstall(dry bool) error {
	h.ran, h.told = nil, nil
	return h.Uninstall(h.t.Context(), dry, h.tell)
}

// files are all files of the host with their texts.
func (h *host) files() map[string]string {
	h.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(h.Root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, h.Root)] = string(text)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// What is installed is installed once, and what uninstall leaves is what was there before.
func TestInstallAndUninstall(t *testing.T) {
	h := newHost(t)
	h.groups["weir"] = true // somebody else's
	if err := h.install(true); err != nil || len(h.ran) != 0 || len(h.files()) != 0 || len(h.told) < 6 {
		t.Errorf("the dry run: %v, %q, %v, %q", err, h.ran, h.files(), h.told)
	}
	dry := h.told
	if err := h.install(false); err != nil || !slices.Equal(dry, h.told) {
		t.Errorf("%v: %q, and %q in the dry run", err, h.told, dry)
	}
	want := []string{"groupadd --system weir-read", "systemctl daemon-reload", "systemctl enable weird.service", "systemctl --no-block start weird.service"}
	if !slices.Equal(h.ran, want) {
		t.Errorf("%q", h.ran)
	}
	unit := h.files()[Unit]
	if !strings.Contains(unit, "\nExecStart=/opt/weir/weird run\n") || !strings.Contains(unit, "\nSupplementaryGroups=weir-read weir\n") || strings.Contains(unit, pathOfUnit) {
		t.Errorf("%s", unit)
	}
	before := h.files()
	if err := h.install(false); err != nil || slices.Contains(h.ran, "systemctl daemon-reload") || slices.Contains(h.ran, want[0]) {
		t.Errorf("again: %v, %q", err, h.ran)
	}
	if after := h.files(); len(after) != len(before) || after[Unit] != unit {
		t.Errorf("again: %v", after)
	}
	h.Program = "/usr/bin/weird" // a new one
	if err := h.install(false); err != nil || !slices.Contains(h.ran, "systemctl daemon-reload") || !slices.Contains(h.ran, "systemctl --no-block try-restart weird.service") {
		t.Errorf("another program: %v, %q", err, h.ran)
	}
	if err := h.uninstall(true); err != nil || len(h.ran) != 0 || h.files()[Unit] == "" {
		t.Errorf("%v, %q", err, h.ran)
	}
	if err := h.uninstall(false); err != nil || len(h.files()) != 0 || h.groups["weir-read"] || !h.groups["weir"] {
		t.Errorf("%v, %v, %v", err, h.files(), h.groups)
	}
	if err := h.uninstall(false); err != nil || len(h.ran) != 0 {
		t.Errorf("again: %v, %q", err, h.ran)
	}
}

// Whichever command fails, all is as it was before.
func TestUndo(t *testing.T) {
	for _, fails := range []string{"groupadd --system weir-read", "groupadd --system weir", "systemctl daemon-reload", "systemctl enable", "systemctl --no-block start"} {
		h := newHost(t)
		h.fails = fails
		if err := h.install(false); err == nil || len(h.files()) != 0 || len(h.groups) != 0 {
			t.Errorf("%s: %v, %v, %v", fails, err, h.files(), h.groups)
		}
	}
	for _, fails := range []string{"systemctl daemon-reload", "groupdel"} {
		h := newHost(t)
		if err := h.install(false); err != nil {
			t.Fatal(err)
		}
		unit := h.files()[Unit]
		h.fails = fails
		if err := h.uninstall(false); err == nil || h.files()[Unit] != unit || len(h.groups) != 2 || !slices.Contains(h.ran, "systemctl --no-block enable --now weird.service") {
			t.Errorf("%s: %v, %v, %q", fails, err, h.groups, h.ran)
		}
	}
}

// What is undone is as it was, not as weird install would have it: what was enabled stays so, and what
// was not is not started.
func TestUndoWhatWas(t *testing.T) {
	h := newHost(t)
	if err := h.install(false); err != nil {
		t.Fatal(err)
	}
	h.fails = "systemctl --no-block try-restart"
	if err := h.install(false); err == nil || slices.Contains(h.ran, "systemctl disable weird.service") {
		t.Errorf("%v, %q", err, h.ran)
	}
	h.isNot = "is-enabled"
	if err := h.install(false); err == nil || !slices.Contains(h.ran, "systemctl disable weird.service") {
		t.Errorf("%v, %q", err, h.ran)
	}
	h.fails = "groupdel"
	if err := h.uninstall(false); err == nil || strings.Contains(strings.Join(h.ran, "\n"), " enable ") || !slices.Contains(h.ran, "systemctl --no-block start weird.service") {
		t.Errorf("%v, %q", err, h.ran)
	}
	h.isNot = "is-active"
	if err := h.uninstall(false); err == nil || !slices.Contains(h.ran, "systemctl enable weird.service") || strings.Contains(strings.Join(h.ran, "\n"), "start") {
		t.Errorf("%v, %q", err, h.ran)
	}
	h.Program = "/a b/weird" // which is no reason not to uninstall
	if h.fails = ""; h.uninstall(false) != nil {
		t.Error("it stays")
	}
}

// What is not weir's stays, and what systemd cannot start is refused, before anything is changed.
func TestRefusals(t *testing.T) {
	h := newHost(t)
	if err := os.WriteFile(h.at(Unit), []byte("[Unit]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.install(false), h.uninstall(false)); err == nil || strings.Count(err.Error(), "is not weir's") != 2 || len(h.ran) != 0 {
		t.Errorf("%v", err)
	}
	for _, program := range []string{"weird", "/a b/weird", "/%n/weird", ""} {
		h := newHost(t)
		h.Program = program
		if err := h.install(false); err == nil || len(h.ran) != 0 {
			t.Errorf("%q: %v", program, err)
		}
	}
	h = newHost(t)
	h.IsUp = func() bool { return false }
	if err := h.install(false); err == nil || !strings.Contains(err.Error(), "systemd does not run here") {
		t.Error(err)
	}
	if err := (System{}).run(t.Context(), "false"); err == nil {
		t.Error("a command that fails is taken for done")
	}
}

// systemd starts weird where there are plans, and where limits of plans that have gone are still on record: nobody else
// takes them off.
func TestConditions(t *testing.T) {
	lab.Unit(t)
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze, which knows whether a unit's conditions are met (Debian package: systemd)")
	}
	for _, c := range []struct {
		what string
		file string // that there is; empty: none
		want bool
	}{
		{"neither", "", false},
		{"no plan", "etc/weir/plans.d/README", false},
		{"a hidden file", "etc/weir/plans.d/.#a.yaml", false},
		{"a plan", "etc/weir/plans.d/a.yaml", true},
		{"a plan", "etc/weir/plans.d/a.yml", true},
		{"a record", "var/lib/weir/plans/docker%3Ax.json", true},
	} {
		root := t.TempDir()
		for _, dir := range []string{"etc/weir/plans.d", "var/lib/weir/plans"} { // weird leaves its own behind
			if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if c.file != "" {
			if err := os.WriteFile(filepath.Join(root, c.file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		words := []string{"condition"}
		for _, line := range regexp.MustCompile(`(?m)^Condition\w+=\|/.*$`).FindAllString(contrib.WeirdService, -1) {
			words = append(words, strings.Replace(line, "|/", "|"+root+"/", 1))
		}
		out, err := exec.Command("systemd-analyze", words...).CombinedOutput()
		met, unmet := strings.Contains(string(out), "Conditions succeeded"), strings.Contains(string(out), "Conditions failed")
		if met == unmet {
			t.Skipf("this systemd-analyze does not tell whether conditions are met: %v: %s", err, out)
		}
		if met != c.want {
			t.Errorf("%s: %v, want %v\n%s", c.what, met, c.want, out)
		}
	}
}

// exposureMost is how exposed a unit may be, as systemd-analyze counts, and tracingMost that of the page that can
// trace: it sees addresses of the kernel. exitsMost is that of weird in the host's network, for the ends of processes.
const exposureMost, tracingMost, exitsMost = 3.2, 3.7, 3.8

// Units are as hard as they can be: systemd-analyze knows each setting, and counts.
func TestHardened(t *testing.T) {
	lab.Unit(t)
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze, which rates how exposed the unit is (Debian package: systemd)")
	}
	for _, c := range []struct {
		name, unit, dropIn string
		most               float64
	}{
		{"contrib", contrib.WeirdService, "", exposureMost},
		{"contrib with ends of processes", contrib.WeirdService, contrib.WeirdExits, exitsMost},
		{"installed", System{Program: "/bin/true"}.text(), "", exposureMost},
		{"metrics", contrib.WeirdMetricsService, "", exposureMost},
		{"metrics with traces", contrib.WeirdMetricsService, contrib.WeirdMetricsTrace, tracingMost},
	} {
		unit := filepath.Join(t.TempDir(), "weird.service")
		if err := os.Mkdir(unit+".d", 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{unit: c.unit, filepath.Join(unit+".d", "drop-in.conf"): c.dropIn} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--no-pager", unit).CombinedOutput()
		if strings.Contains(string(out), "unrecognized option") {
			t.Skip("only systemd-analyze of systemd 250 or later can look at a unit that is not loaded (--offline), and this one is older")
		}
		found := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("%v: %s", err, out)
		}
		if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > c.most {
			t.Errorf("%s: %v, at most %v\n%s", c.name, level, c.most, out)
		}
		if strings.Contains(string(out), "Unknown key") {
			t.Errorf("%s", out)
		}
	}
	// Each that is left out has its reason.
	both := []string{"PrivateDevices", "PrivateTmp", "ProcSubset", "RestrictSUIDSGID", "@debug", "@privileged", "@resources", "SYS_ADMIN", "SYS_PTRACE", "BPF"}
	for text, names := range map[string][]string{
		contrib.WeirdService:        append(slices.Clone(both), "ProtectHome", "ProtectControlGroups", "RestrictRealtime", "KILL", "DAC_OVERRIDE"),
		contrib.WeirdMetricsService: append(slices.Clone(both), "PrivateNetwork", "DAC_READ_SEARCH"),
		contrib.WeirdExits:          {"taskstats", "CAP_NET_ADMIN", "IPAddressDeny"},
		contrib.WeirdMetricsTrace:   {"ProtectKernelTunables", "ProtectKernelLogs", "CAP_SYSLOG"},
	} {
		for _, name := range names {
			if !regexp.MustCompile(`(?m)^#.*` + name).MatchString(text) {
				t.Errorf("the unit does not say why it has, or has not, %s:\n%s", name, text)
			}
		}
	}
}
