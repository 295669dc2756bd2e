package nri

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
)

// When a container is made, the kernel throttles its disks already, and nothing is limited. That is done once for each
// disk, and not where a group has rules.
func TestDisksArePrepared(t *testing.T) {
	lab.Unit(t)
	for name, c := range map[string]struct {
		config      string
		annotations map[string]string
		volumes     []annotations.On
		want        string
	}{
		"a plan":            {config, nil, nil, "254:0 wbps=max, 254:16 wbps=max"},
		"annotations":       {noPlan, map[string]string{"weir.io/write": "1M"}, nil, "254:0 wbps=max, 254:16 wbps=max"},
		"a volume":          {noPlan, map[string]string{"weir.io/on.pvc-1": "write=1M"}, nil, "254:0 wbps=max, 254:16 wbps=max"},
		"a driver's volume": {noPlan, nil, []annotations.On{{Volume: "pvc-1", Limit: limit.Limit{WBPS: limit.PerSecond(1e6)}}}, "254:0 wbps=max, 254:16 wbps=max"},
		"a container":       {noPlan, map[string]string{"weir.io/plan.web": "db"}, nil, "254:0 wbps=max, 254:16 wbps=max"},
		"nothing":           {noPlan, nil, nil, ""},
	} {
		w := newWorld(t, "v2", inSlices+"/cri-containerd-ID.scope", c.config)
		w.plugin.options.Live = live{c.volumes}
		const sandbox = inSlices + "/cri-containerd-s1.scope"
		var lines []string
		w.mu.Lock()
		w.refuse = func(file, line string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if filepath.Dir(file) != filepath.Join(w.root, "sys/fs/cgroup", sandbox) {
				t.Errorf("%s: %s is written to %s", name, line, file)
			}
			lines = append(lines, line)
			return nil
		}
		w.mu.Unlock()
		l := w.plugin.limiter()
		for range 3 {
			if err := l.prepare(t.Context(), w.plans, w.pod(c.annotations), container("web", webID, slice1+":cri-containerd:ID")); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(lines)
		if got := strings.Join(lines, ", "); got != c.want || w.limits(t, sandbox) != "" {
			t.Errorf("%s: %q is written, want %q; in force: %q", name, got, c.want, w.limits(t, sandbox))
		}
		if err := l.reopen(); err != nil { // there may be other disks
			t.Fatal(err)
		}
		const rules = "254:0 rbps=max wbps=7 riops=max wiops=max\n"
		if err := os.WriteFile(filepath.Join(w.root, "sys/fs/cgroup", sandbox, "io.max"), []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		lines = nil
		if err := l.prepare(t.Context(), w.plans, w.pod(c.annotations), container("web", webID, slice1+":cri-containerd:ID")); err != nil || len(lines) != 0 || w.limits(t, sandbox) != "254:0 wbps=7" {
			t.Errorf("%s: %v; %q is written to a group with rules: %q", name, err, lines, w.limits(t, sandbox))
		}
		if err := l.close(); err != nil {
			t.Error(err)
		}
	}
}

// The runtime makes a container: its disks are prepared beside that, and its start finds them so.
func TestAMadeContainerIsPrepared(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	w.serve(t)
	prepared := make(chan string, 64)
	w.mu.Lock()
	w.refuse = func(_, line string) error { prepared <- line; return nil }
	w.mu.Unlock()
	one := container("web", webID, plain1+"/ID")
	if _, err := w.runtime.CreateContainer(t.Context(), &api.CreateContainerRequest{Pod: w.pod(nil), Container: one}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case line := <-prepared:
			if !strings.HasSuffix(line, " wbps=max") {
				t.Errorf("%q is written before the start", line)
			}
		case <-time.After(patience):
			t.Fatal("nothing is prepared")
		}
	}
	if err := w.runtime.StartContainer(t.Context(), &api.StartContainerRequest{Pod: w.pod(nil), Container: one}); err != nil || w.limits(t, plain1) == "" {
		t.Errorf("%v; in force: %q", err, w.limits(t, plain1))
	}
}

// One disk that cannot be prepared keeps no other from it. What is mounted since is prepared too, and after a while
// everything is once more: another disk may have the number of one that was taken away.
func TestOtherDisksArePrepared(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", inSlices+"/cri-containerd-ID.scope", noPlan)
	file := filepath.Join(w.root, "proc/1/mountinfo")
	both, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	mounted := func(without string) {
		t.Helper()
		var text string
		for line := range strings.Lines(string(both)) {
			if without == "" || !strings.Contains(line, without) {
				text += line
			}
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	broken := "254:0 "
	w.mu.Lock()
	w.refuse = func(_, line string) error {
		if strings.HasPrefix(line, broken) {
			return syscall.EINVAL
		}
		lines = append(lines, line)
		return nil
	}
	w.mu.Unlock()
	l := w.plugin.limiter()
	defer func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	}()
	prepare := func() error {
		lines = nil
		return l.prepare(t.Context(), w.plans, w.pod(map[string]string{"weir.io/write": "1M"}), container("web", webID, slice1+":cri-containerd:ID"))
	}
	if err := prepare(); !errors.Is(err, syscall.EINVAL) || strings.Join(lines, ", ") != "254:16 wbps=max" {
		t.Errorf("with a broken disk: %v; %q", err, lines)
	}
	broken = "none"
	mounted("/dev/vdb")
	if err := errors.Join(l.reopen(), prepare()); err != nil || strings.Join(lines, ", ") != "254:0 wbps=max" {
		t.Errorf("without vdb: %v; %q", err, lines)
	}
	mounted("")
	if err := prepare(); err != nil || strings.Join(lines, ", ") != "254:16 wbps=max" {
		t.Errorf("with vdb: %v; %q", err, lines)
	}
	if err := prepare(); err != nil || len(lines) != 0 {
		t.Errorf("once more: %v; %q", err, lines)
	}
	if err := errors.Join(l.reopen(), prepare()); err != nil || len(lines) != 2 {
		t.Errorf("after a while: %v; %q", err, lines)
	}
}
