package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/contrib"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/containerd"
	"github.com/weir-io/weir/lab/environ"
)

const (
	units = "/etc/systemd/system"
	plans = "/etc/weir/plans.d"
	// results are where pods leave what they have measured.
	results = "/var/lib/lab-node/results"
	// Scratch is a directory on the guest's own disk, which is there after a boot too.
	Scratch = "/var/lib/lab-node/scratch"
)

// DropIn is what docs/guide/kubernetes.md adds to weird's unit.
const DropIn = `[Unit]
ConditionPathExistsGlob=
After=containerd.service crio.service
Before=kubelet.service
[Service]
ExecStart=
ExecStart=/usr/local/bin/weird run --nri /var/run/nri/nri.sock
`

// A Node is one, set up for a cgroup driver.
type Node struct {
	Driver  string // "systemd" or "cgroupfs"
	unified string
	weir    string // the program
	image   string
	api     bool // its pods are the API server's, and not static
}

// New sets up what the node consists of, and starts containerd. The rest starts with Start.
func New(t testing.TB, e environ.Environ, driver, planned string) *Node {
	t.Helper()
	n := Again(t, e, driver)
	weird, kubelet := find(t, "weird"), find(t, "kubelet")
	for path, text := range map[string]string{
		containerd.ConfigFile:                 containerd.Config(nriSocket, n.Driver == "systemd"),
		kubeletConfig:                         n.kubelet(),
		processorScript:                       describeProcessor,
		units + "/kubelet.service":            strings.Replace(kubeletUnit, "PATH", kubelet, 1),
		units + "/weird.service":              strings.ReplaceAll(contrib.WeirdService, "/usr/local/bin/weird", weird),
		units + "/weird.service.d/nri.conf":   strings.ReplaceAll(DropIn, "/usr/local/bin/weird", weird),
		filepath.Join(plans, "10-pods.yaml"):  planned,
		filepath.Join(results, ".weir-lab"):   "",
		filepath.Join(Scratch, ".weir-lab"):   "",
		filepath.Join(manifests, ".weir-lab"): "", // kubelet passes over names that begin with a dot
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "systemctl", "daemon-reload")
	containerd.Unit(t)
	run(t, "systemctl", "start", "containerd")
	n.importImages(t)
	return n
}

// Again is the node that New has set up before the guest was booted.
func Again(t testing.TB, e environ.Environ, driver string) *Node {
	t.Helper()
	return &Node{Driver: driver, unified: e.Cgroups.Unified, weir: find(t, "weir"), image: image}
}

// Start starts weird and kubelet.
func (n *Node) Start(t testing.TB) {
	t.Helper()
	run(t, "systemctl", "start", "weird")
	n.AwaitWeird(t)
	run(t, "systemctl", "start", "kubelet")
}

// Stop ends all pods, and what Start and New have started. Logs are printed where the test has failed.
func (n *Node) Stop(t testing.TB, pods ...*Pod) {
	if t.Failed() {
		n.logs(t, "weird", "kubelet")
	}
	groups := map[*Pod]string{}
	for _, p := range pods {
		if s, is := n.State(t, p); is {
			groups[p] = n.Group(s)
		}
		n.Remove(t, p)
	}
	for p, group := range groups {
		lab.Await(t, time.Minute, "the end of pod "+p.Name, func() bool { _, err := os.Stat(group); return errors.Is(err, os.ErrNotExist) })
	}
	run(t, "systemctl", "stop", "kubelet", "weird", "containerd")
	if n.Driver == "systemd" {
		run(t, "systemctl", "stop", "kubepods.slice")
	}
}

// logs prints the last words of units.
func (n *Node) logs(t testing.TB, units ...string) {
	for _, unit := range units {
		out, err := exec.Command("journalctl", "--no-pager", "--quiet", "--boot", "--lines=150", "--output=cat", "--unit="+unit).CombinedOutput()
		t.Logf("the last words of %s (%v):\n%s", unit, err, out)
	}
}

// AwaitWeird waits until the container runtime asks weird, and returns what weird says of it.
func (n *Node) AwaitWeird(t testing.TB) (r api.AgentRuntime) {
	t.Helper()
	lab.Await(t, 30*time.Second, "the container runtime to ask weird", func() bool {
		s := n.Weird(t)
		if s == nil || !strings.HasPrefix(s.Name, "containerd ") {
			return false
		}
		r = *s
		return true
	})
	return r
}

// Weird is what weird says of the container runtime; nil: it does not run.
func (n *Node) Weird(t testing.TB) *api.AgentRuntime {
	t.Helper()
	out, err := exec.Command("weird", "status", "--json").Output()
	if err != nil {
		return nil
	}
	var a api.Agent
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("weird status: %v\n%s", err, out)
	}
	return a.Runtime
}

// Kill ends a unit's main process without a word, and returns its number.
func (n *Node) Kill(t testing.TB, unit string) (pid string) {
	t.Helper()
	pid = MainPID(t, unit)
	run(t, "kill", "-KILL", pid)
	return pid
}

// MainPID is the number of a unit's main process; "0": it has none.
func MainPID(t testing.TB, unit string) string {
	t.Helper()
	return run(t, "systemctl", "show", "--property=MainPID", "--value", unit)
}

func find(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run gives a command's standard output, and ends the test when it fails.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience(t, time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // a daemon that it leaves behind may hold the pipe
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	if took := time.Since(began); took > time.Second {
		t.Logf("%.1fs %s %s", took.Seconds(), name, strings.Join(args, " "))
	}
	return strings.TrimSpace(stdout.String())
}
