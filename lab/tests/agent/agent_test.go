package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/lab"
)

// watches counts the inotify watches of this process, as the kernel has them.
func watches(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil { // the list's own is closed by now
			n += strings.Count(string(text), "inotify wd:")
		}
	}
	return n
}

// The kernel's cgroup file systems tell of births, ends and writes, and no watch is left of a group
// that has ended.
func TestTreeOnCgroups(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Once)
	mount, file := e.Cgroups.Blkio, "blkio.throttle.write_bps_device"
	if e.Cgroups.IOInV2 {
		mount, file = e.Cgroups.Unified, "io.max"
	}
	top := filepath.Join(mount, "weir-agent-test")
	lab.Cgroup(t, top)
	if e.Cgroups.IOInV2 {
		if err := os.WriteFile(filepath.Join(top, "cgroup.subtree_control"), []byte("+io"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	disk := lab.RawDisk(t)
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience(t, patience))
	defer cancel()
	followed, err := tree.Open(top, tree.Options{Files: []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	defer followed.Close()
	var seen []tree.Event
	expect := func(want tree.Event) {
		t.Helper()
		for !slices.Contains(seen, want) {
			events, err := followed.Next(ctx)
			if err != nil {
				t.Fatalf("%v: %v after %v", want, err, seen)
			}
			seen = append(seen, events...)
		}
		seen = nil
	}
	before := watches(t)
	var took []time.Duration
	for i := range 300 {
		name := fmt.Sprint("g", i)
		began := time.Now()
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
		expect(tree.Event{Kind: tree.Born, Path: name})
		took = append(took, time.Since(began))
		if i%100 == 0 {
			rule := disk.Number.String() + " 1000000"
			if e.Cgroups.IOInV2 {
				rule = disk.Number.String() + " wbps=1000000"
			}
			if err := os.WriteFile(filepath.Join(top, name, file), []byte(rule), 0o600); err != nil {
				t.Fatal(err)
			}
			expect(tree.Event{Kind: tree.Written, Path: name, File: file})
		}
		if err := os.Remove(filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
		expect(tree.Event{Kind: tree.Ended, Path: name})
	}
	if got := watches(t); got != before {
		t.Errorf("%d watches, before %d", got, before)
	}
	if events, err := followed.Resync(); err != nil || len(events) > 0 || followed.Stats() != (tree.Stats{}) {
		t.Errorf("%v, %v, %+v", events, err, followed.Stats())
	}
	slices.Sort(took)
	t.Logf("from mkdir to its event: p50 %v, p99 %v", took[len(took)/2], took[len(took)*99/100])
}

// Units that start get the limits of their plan, and get them back when somebody takes them away.
func TestAgentKeepsUnits(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Systemd)
	disk := lab.RawDisk(t)
	plans := filepath.Join(t.TempDir(), "plans.yaml")
	text := fmt.Sprintf("plans: {small: {on: [{path: %s, write: 3MB/s}]}}\nassign: [{unit: 'weir-agent-*.service', plan: small}]\n", disk.Node)
	if err := os.WriteFile(plans, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Options{Root: "/", Plans: plans, Log: slog.New(slog.DiscardHandler),
		Open: func() (*host.Host, error) { return host.Open(host.Options{Root: "/"}) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, func() {}) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	const unit = "weir-agent-1.service"
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	run("systemd-run", "--quiet", "--unit="+unit, "sleep", "600")
	defer run("systemctl", "stop", unit)
	file := filepath.Join(e.Cgroups.Blkio, "system.slice", unit, "blkio.throttle.write_bps_device")
	none := disk.Number.String() + " 0"
	if e.Cgroups.IOInV2 {
		file, none = filepath.Join(e.Cgroups.Unified, "system.slice", unit, "io.max"), disk.Number.String()+" wbps=max"
	}
	inForce := func() bool {
		rules, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(rules), disk.Number.String()+" ") && strings.Contains(string(rules), "3000000")
	}
	lab.Await(t, patience, "the unit's limit", inForce)
	known := func() bool {
		s := a.Status()
		return len(s.Targets) == 1 && s.Targets[0].State == reconcile.InForce
	}
	lab.Await(t, patience, "the agent to know it", known)
	if err := os.WriteFile(file, []byte(none), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, patience, "the limit to be set again", func() bool { return inForce() && known() && a.Status().Counts.Repaired > 0 })
	if c := a.Status().Counts; c.Missed != 0 || c.Failures != 0 {
		t.Errorf("%+v", c)
	}
}
