package main

import (
	"bytes"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/contrib"
	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/lab"
)

func TestShowStatus(t *testing.T) {
	lab.Unit(t)
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	show := func(s agent.Status) string {
		var text bytes.Buffer
		showStatus(&cli.Out{Data: &text}, api.AgentOf(s), now)
		return text.String()
	}
	if got := show(agent.Status{}); got != "no running target has a plan; weir plan list shows the plans, and which targets they are for\n" {
		t.Error(got)
	}
	if got := show(agent.Status{Runtime: &agent.RuntimeStatus{Runtime: "containerd 2.1"}}); got != "no running target has a plan; weir plan list shows the plans, and which targets they are for\n" {
		t.Error(got)
	}
	got := show(agent.Status{Runtime: &agent.RuntimeStatus{Error: "no such file"}, PlansError: "a.yaml:1:1: no", TreeError: "follow /sys/fs/cgroup: no more", Hierarchies: map[string]tree.Stats{"/sys/fs/cgroup": {Unwatched: 3}, "/other": {Groups: 9}},
		Sources: []reconcile.Following{{Kind: "docker"}, {Kind: "pod", LookError: "no answer"}},
		Targets: []reconcile.Status{
			{Name: "docker:web\x1b[2J", Plan: "small", State: reconcile.InForce, Since: now.Add(-90 * time.Second), Drifts: 2},
			{Name: "unit:x.service", Plan: "small", State: reconcile.Failed, Since: now, Finding: "no such device"},
		}})
	for _, line := range []string{"in-force  1 min 30 s", "unit:x.service: no such device", "newer plans are not in force: a.yaml:1:1: no", "pod: no answer", "the container runtime does not ask weir before it starts containers: no such file; enable NRI in the runtime, and check the socket of --nri", "/sys/fs/cgroup: weird learns late of what starts below 3 cgroups; its log says why, and what to do",
		"weird cannot watch cgroups, and finds new targets and changed limits up to 5 minutes late: follow /sys/fs/cgroup: no more\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("%q is not in\n%s", line, got)
		}
	}
	if !strings.Contains(got, "not-told") {
		t.Error(got)
	}
	if strings.Contains(got, "\x1b") || strings.Contains(got, "/other") || strings.Contains(got, "docker:\n") {
		t.Error(got)
	}
}

// After the clock was set back, no time is told of what was before.
func TestShowStatusOfTheFuture(t *testing.T) {
	lab.Unit(t)
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	later := now.Add(time.Hour)
	a := api.AgentOf(agent.Status{Targets: []reconcile.Status{{Key: "docker:1", Name: "docker:web", Plan: "small", State: reconcile.InForce, Since: later}},
		Held: map[string]agent.Held{"docker:1": {Verdict: held.Verdict{State: held.Held, Since: later, Limits: []held.Limit{
			{Device: blkdev.Number{Major: 8}, Key: limit.WBPS, PerSec: 1e7, State: held.Held, Since: later, Rate: 1e7, From: later, To: later.Add(6 * time.Second)}}}}}})
	var text bytes.Buffer
	out := &cli.Out{Data: &text}
	showStatus(out, a, now)
	showHeld(out, a.Targets[0], now)
	for _, line := range []string{"in-force      –  held –", "held since –; last measured 10.0 MB/s, over 6.0 s until – ago\n"} {
		if !strings.Contains(text.String(), line) || strings.Contains(text.String(), "-3600") {
			t.Errorf("%q is not in\n%s", line, &text)
		}
	}
}

// A limit is held, or not, with the measurement that says so; else it says why nothing is told.
func TestShowHeld(t *testing.T) {
	lab.Unit(t)
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	sda := blkdev.Number{Major: 8}
	one := agent.Held{Verdict: held.Verdict{State: held.NotHeld, Since: now.Add(-time.Minute), Limits: []held.Limit{
		{Device: sda, Node: "/dev/sda", Key: limit.RBPS, PerSec: 1e6, State: held.NotTold, Why: "it was not at its limit"},
		{Device: sda, Node: "/dev/sda", Key: limit.WBPS, PerSec: 1e7, State: held.NotHeld, Since: now.Add(-time.Minute), Rate: 1.25e7, From: now.Add(-10 * time.Second), To: now.Add(-3 * time.Second)},
		{Device: sda, Key: limit.WIOPS, PerSec: 100, State: held.Held, Since: now.Add(-time.Hour), Rate: 99.6, From: now.Add(-time.Minute), To: now},
	}}, Finding: agent.Finding{Code: "v1-writeback", Text: "it is v1"}}
	a := api.AgentOf(agent.Status{Held: map[string]agent.Held{"docker:1": one}, Targets: []reconcile.Status{
		{Key: "docker:1", Name: "docker:web", State: reconcile.InForce}, {Key: "docker:2", Name: "docker:db", State: reconcile.InForce}}})
	var text bytes.Buffer
	out := &cli.Out{Data: &text}
	showStatus(out, a, now)
	showHeld(out, a.Targets[0], now)
	for _, line := range []string{
		"not-held 1 min 0 s ", "docker:web is not held: v1-writeback: it is v1\n",
		"read of 1 MB/s on /dev/sda: not-told: it was not at its limit\n",
		"write of 10 MB/s on /dev/sda: not-held since 1 min 0 s; last measured 12.5 MB/s, over 7.0 s until 3.0 s ago\n",
		"write of 100 ops/s on 8:0: held since 1 h 0 min; last measured 100 ops/s, over 1 min 0 s until 0 ms ago\n",
		"\nv1-writeback: it is v1\n",
	} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("%q is not in\n%s", line, text.String())
		}
	}
}

// The unit starts a verb that there is, with flags that it has, and is told what the verb tells.
func TestUnit(t *testing.T) {
	lab.Unit(t)
	text, err := os.ReadFile("../../contrib/weird.service")
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, is := strings.Cut(strings.TrimSpace(line), "="); is {
			settings[key] = value
		}
	}
	words := strings.Fields(settings["ExecStart"])
	cmd, rest, err := newRoot(&cli.Out{}).Find(words[1:])
	if err != nil || cmd.Name() != "run" || cmd.ParseFlags(rest) != nil || settings["Type"] != "notify" || settings["WatchdogSec"] == "" || settings["ExecReload"] != "kill -HUP $MAINPID" {
		t.Errorf("%v %v: %v", settings, rest, err)
	}
	// weird is ready late where many targets take long, and is started again after whatever it fails of.
	if settings["TimeoutStartSec"] != "infinity" || settings["StartLimitIntervalSec"] != "0" || settings["Restart"] != "always" {
		t.Errorf("%v", settings)
	}
	if !strings.HasPrefix(words[0], "/") || settings["KillMode"] != "process" {
		t.Errorf("%v", settings)
	}
}

// So does the unit of the metrics, with history and the page.
func TestMetricsUnit(t *testing.T) {
	lab.Unit(t)
	_, line, _ := strings.Cut(contrib.WeirdMetricsService, "\nExecStart=")
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	cmd, rest, err := newRoot(&cli.Out{}).Find(words[1:])
	if err != nil || cmd.Name() != "metrics" || cmd.ParseFlags(rest) != nil || len(cmd.Flags().Args()) != 0 {
		t.Fatalf("%q: %v", line, err)
	}
	dir := cmd.Flags().Lookup("history").Value.String()
	if dir != history.Dir || cmd.Flags().Lookup("page").Value.String() != "true" || !strings.HasPrefix(words[0], "/") {
		t.Errorf("%q", line)
	}
	if !strings.Contains(contrib.WeirdMetricsService, "\nStateDirectory="+strings.TrimPrefix(dir, "/var/lib/")+"\n") {
		t.Errorf("the unit may not write %s", dir)
	}
}

// systemd is told at the socket that it names.
func TestNotify(t *testing.T) {
	lab.Unit(t)
	conn, path := datagrams(t)
	t.Setenv("NOTIFY_SOCKET", path)
	notify("READY=1")
	buf := make([]byte, 64)
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(buf); err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", path+".none")
	notify("READY=1") // nobody is there, and that is no reason to end
}

func datagrams(t *testing.T) (*net.UnixConn, string) {
	t.Helper()
	path := t.TempDir() + "/n"
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, path
}
