package main

import (
	"bytes"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/internal/api"
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
	got := show(agent.Status{Runtime: &agent.RuntimeStatus{Error: "no such file"}, PlansError: "a.yaml:1:1: no", Hierarchies: map[string]tree.Stats{"/sys/fs/cgroup": {Unwatched: 3}, "/other": {Groups: 9}},
		Sources: []reconcile.Following{{Kind: "docker"}, {Kind: "pod", LookError: "no answer"}},
		Targets: []reconcile.Status{
			{Name: "docker:web\x1b[2J", Plan: "small", State: reconcile.InForce, Since: now.Add(-90 * time.Second), Drifts: 2},
			{Name: "unit:x.service", Plan: "small", State: reconcile.Failed, Since: now, Finding: "no such device"},
		}})
	for _, line := range []string{"in-force  1 min 30 s", "unit:x.service: no such device", "newer plans are not in force: a.yaml:1:1: no", "pod: no answer", "the container runtime does not ask weir before it starts containers: no such file; enable NRI in the runtime, and check the socket of --nri", "/sys/fs/cgroup: weird learns late of what starts below 3 cgroups; its log says why, and what to do"} {
		if !strings.Contains(got, line) {
			t.Errorf("%q is not in\n%s", line, got)
		}
	}
	if strings.Contains(got, "\x1b") || strings.Contains(got, "/other") || strings.Contains(got, "docker:\n") {
		t.Error(got)
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
