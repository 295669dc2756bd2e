package nri

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/weir-io/weir/lab"
)

const config = `
plans:
  small: {write: 10M, read: 20M}
  db: {write: 30M, on: [{path: /data, write: 50M}]}
  tight: {write: 1M}
assign:
  - {pod: {namespace: prod}, plan: small}
allow-labels: [db]
`

// noPlan has plans that a pod may choose, and no other for it.
var noPlan = strings.Split(config, "assign:")[0] + "allow-labels: [db]\n"

// Before a container's program starts, the limits of its pod and its own are in force.
func TestStart(t *testing.T) {
	lab.Unit(t)
	a := func(pairs ...string) map[string]string {
		all := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			all["weir.io/"+pairs[i]] = pairs[i+1]
		}
		return all
	}
	for _, c := range []struct {
		name, config  string
		annotations   map[string]string
		pod, web, log string // what is in force once web and log have started
	}{
		{"a plan", config, nil, "254:0 rbps=20000000 wbps=10000000 254:16 rbps=20000000 wbps=10000000", "", ""},
		{"no plan", noPlan, nil, "", "", ""},
		{"annotations alone", noPlan, a("write", "1Mi"), "254:0 wbps=1048576 254:16 wbps=1048576", "", ""},
		{"annotations lower a plan", config, a("write", "5M", "write-iops", "7"), "254:0 rbps=20000000 wbps=5000000 wiops=7 254:16 rbps=20000000 wbps=5000000 wiops=7", "", ""},
		{"annotations do not raise a plan", config, a("write", "50M", "on.cache", "write=60M"), "254:0 rbps=20000000 wbps=10000000 254:16 rbps=20000000 wbps=10000000", "", ""},
		{"an allowed plan may raise", config, a("plan", "db"), "254:16 wbps=50000000 254:0 wbps=30000000", "", ""},
		{"an allowed plan and less", config, a("plan", "db", "write", "40M"), "254:16 wbps=40000000 254:0 wbps=30000000", "", ""},
		{"the root", noPlan, a("on.rootfs", "write=3M"), "254:0 wbps=3000000", "", ""},
		{"a directory of the node", noPlan, a("on.cache", "read=3M"), "254:0 rbps=3000000", "", ""},
		{"a persistent volume", noPlan, a("on.pvc-1", "write-iops=9"), "254:16 wiops=9", "", ""},
		{"a path", noPlan, a("on.any", "path=/db write=4M"), "254:16 wbps=4000000", "", ""},
		{"a volume instead of every disk", noPlan, a("write", "1M", "on.pvc-1", "write=4M"), "254:0 wbps=1000000 254:16 wbps=4000000", "", ""},
		{"two volumes on one disk", noPlan, a("on.rootfs", "write=3M read=5M", "on.cache", "write=2M"), "254:0 rbps=5000000 wbps=2000000", "", ""},
		{"a volume that nobody has", noPlan, a("on.other", "write=3M"), "", "", ""},
		{"a container", noPlan, a("write.web", "2M"), "", "254:0 wbps=2000000 254:16 wbps=2000000", ""},
		{"a container's plan", config, a("plan.log", "db"), "254:0 rbps=20000000 wbps=10000000 254:16 rbps=20000000 wbps=10000000", "", "254:16 wbps=50000000 254:0 wbps=30000000"},
		{"both", noPlan, a("read", "8M", "read.log", "2M"), "254:0 rbps=8000000 254:16 rbps=8000000", "", "254:0 rbps=2000000"},
	} {
		for driver, at := range map[string]struct{ path, group, pod string }{
			"cgroupfs":        {plain1 + "/ID", plain1 + "/ID", plain1},
			"systemd":         {slice1 + ":cri-containerd:ID", inSlices + "/cri-containerd-ID.scope", inSlices},
			"without systemd": {slice1 + ":cri-containerd:ID", "/system/" + "pod" + uid + "/ID", "/system/pod" + uid},
		} {
			if driver != "cgroupfs" && c.name != "both" {
				continue // where the group is does not depend on the limits
			}
			t.Run(c.name+", "+driver, func(t *testing.T) {
				w := newWorld(t, "v2", at.group, c.config)
				w.serve(t)
				pod := w.pod(c.annotations)
				for name, id := range map[string]string{"web": webID, "log": logID} {
					one := container(name, id, at.path)
					if driver == "without systemd" { // the process leads to the group
						one.Pid = map[string]uint32{"web": 4900, "log": 4910}[name]
					}
					if err := w.begin(t, pod, one); err != nil {
						t.Fatal(err)
					}
				}
				for group, want := range map[string]string{at.pod: c.pod, strings.Replace(at.group, "ID", webID, 1): c.web, strings.Replace(at.group, "ID", logID, 1): c.log} {
					got := w.limits(t, group)
					if sorted(got) != sorted(want) {
						t.Errorf("%s has %q, want %q", group, got, want)
					}
				}
				if s := w.plugin.Status(); s.Starts != 2 || s.Late+s.Failed+s.Refused != 0 || (s.Limited > 0) != (c.pod+c.web+c.log != "") {
					t.Errorf("%+v", s)
				}
				if t.Failed() {
					return
				}
				w.await(t, "record", func() bool { return w.records(t) == filled(c.pod, c.web, c.log) })
			})
		}
	}
}

// sorted is a text of io.max in the order of its lines.
func sorted(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, " 254:", "\n254:"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

func (w *world) records(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.root, "var/lib/weir/plans"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return len(entries)
}

// What is wrong is refused when a container of the pod is made, with one line that says what. Nothing has been written then.
func TestRefusals(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	w.serve(t)
	for annotation, want := range map[string]string{
		"write=10MB/s":                              "weir: annotation weir.io/write: 10MB/s is no Kubernetes quantity",
		"plan=small":                                "weir: annotation weir.io/plan: allow-labels does not have the plan small",
		"plan.web=nowhere":                          "weir: annotation weir.io/plan.web: allow-labels does not have the plan nowhere",
		"plan=\x1b[2J":                              `weir: annotation weir.io/plan: "\x1b[2J" cannot be the name of a plan`,
		"on.../x=write=1":                           "weir: annotation weir.io/on.../x: ../x cannot be the name of a volume",
		"read=" + strings.Repeat("9", 3<<20):        "weir: annotation weir.io/read: it has 3145728 bytes",
		strings.Repeat("\x1b[2J", 1<<18) + "=write": `weir: annotation "weir.io/\x1b[2J\x1b[2J`,
	} {
		name, value, _ := strings.Cut(annotation, "=")
		pod := w.pod(map[string]string{"weir.io/" + name: value})
		before := w.plugin.Status().Refused
		if err := w.runtime.RunPodSandbox(t.Context(), &api.RunPodSandboxRequest{Pod: pod}); err != nil {
			t.Errorf("%.60s: containerd would not clean up: %v", annotation, err)
		}
		err := w.begin(t, pod, container("web", webID, plain1+"/ID"))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%.60s: %.300v", annotation, err)
		}
		if got := w.plugin.Status().Refused; got != before+1 {
			t.Errorf("%.60s: %d refused, before %d", annotation, got, before)
		}
	}
	if got := w.limits(t, plain1); got != "" {
		t.Errorf("in force: %s", got)
	}
	// The plugin is still there.
	if err := w.begin(t, w.pod(nil), container("web", webID, plain1+"/ID")); err != nil || w.limits(t, plain1) == "" {
		t.Error(err)
	}
}

// Where the kernel refuses a rule, a container that asks for it does not start; one that has a plan
// starts, and the agent is told to try again.
func TestTheKernelRefuses(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	w.serve(t)
	w.mu.Lock()
	w.refuse = func(file, line string) error { return &fs.PathError{Op: "write", Path: file, Err: syscall.ENODEV} }
	w.mu.Unlock()
	if err := w.begin(t, w.pod(nil), container("web", webID, plain1+"/ID")); err != nil {
		t.Error(err)
	}
	if !w.told("pod", "containerd") {
		t.Errorf("the agent was told of %v", w.changed)
	}
	for asked, value := range map[string]string{"write": "1Mi", "write.web": "1Mi", "plan": "db", "plan.web": "db"} {
		err := w.begin(t, w.pod(map[string]string{"weir.io/" + asked: value}), container("web", webID, plain1+"/ID"))
		if err == nil || !strings.Contains(err.Error(), "no such device") {
			t.Errorf("%s: %v", asked, err)
		}
	}
	if s := w.plugin.Status(); s.Failed != 5 || s.Limited != 0 {
		t.Errorf("%+v", s)
	}
}

// A plan has a place that is not there: a container that asks for this plan does not start; one that others have given it
// starts, and the agent is told to try again.
func TestAPlaceThatIsMissing(t *testing.T) {
	lab.Unit(t)
	const lost = "plans: {lost: {write: 10M, on: [{path: /nowhere, write: 5M}]}}\n"
	w := newWorld(t, "v2", plain1+"/ID", lost+"assign: [{pod: {namespace: prod}, plan: lost}]\n")
	w.serve(t)
	if err := w.begin(t, w.pod(nil), container("web", webID, plain1+"/ID")); err != nil {
		t.Error(err)
	}
	if !w.told("pod", "containerd") {
		t.Errorf("the agent was told of %v", w.changed)
	}
	w.set(t, lost+"allow-labels: [lost]\n")
	for _, asked := range []string{"plan", "plan.web"} {
		err := w.begin(t, w.pod(map[string]string{"weir.io/" + asked: "lost"}), container("web", webID, plain1+"/ID"))
		if err == nil || !strings.Contains(err.Error(), "resolve /nowhere: no such file or directory") {
			t.Errorf("%s: %v", asked, err)
		}
	}
	if s := w.plugin.Status(); s.Failed != 3 || s.Limited != 0 || w.limits(t, plain1) != "" {
		t.Errorf("%+v", s)
	}
}

// A volume in memory cannot be limited, and a container that asks for it does not start.
func TestAVolumeInMemory(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", noPlan)
	w.serve(t)
	err := w.begin(t, w.pod(map[string]string{"weir.io/on.memory": "write=1Mi"}), container("web", webID, plain1+"/ID"))
	if err == nil || !strings.Contains(err.Error(), "annotation weir.io/on.memory: ") || !strings.Contains(err.Error(), "tmpfs") {
		t.Error(err)
	}
}

// On cgroup v1 a container can be limited, and a pod cannot.
func TestV1(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v1", plain1+"/ID", config)
	w.serve(t)
	if err := w.begin(t, w.pod(nil), container("log", logID, plain1+"/ID")); err != nil {
		t.Error(err)
	}
	if err := w.begin(t, w.pod(map[string]string{"weir.io/write": "1Mi"}), container("log", logID, plain1+"/ID")); err == nil || !strings.Contains(err.Error(), "on cgroup v1 a limit applies to one group") {
		t.Error(err)
	}
	w.set(t, noPlan)
	if err := w.begin(t, w.pod(map[string]string{"weir.io/write.log": "1Mi"}), container("log", logID, plain1+"/ID")); err != nil {
		t.Error(err)
	}
	rule, err := os.ReadFile(filepath.Join(w.root, "sys/fs/cgroup/blkio", plain1, logID, "blkio.throttle.write_bps_device"))
	if err != nil || string(rule) != "254:0 1048576\n" {
		t.Errorf("%q, %v", rule, err)
	}
}

// A start never waits much longer than a second, whatever the kernel does, and the next ones do not
// wait at all.
func TestNothingHangs(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	w.plugin.answer = answerMost
	w.serve(t)
	let := make(chan bool)
	w.mu.Lock()
	w.refuse = func(string, string) error { <-let; return nil }
	w.mu.Unlock()
	began := time.Now()
	if err := w.begin(t, w.pod(map[string]string{"weir.io/write": "1Mi"}), container("web", webID, plain1+"/ID")); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < answerMost || took > patience/2 { // the test itself may wait for a processor
		t.Errorf("the first start took %v", took)
	}
	w.await(t, "word to the agent", func() bool { return w.told("pod", "containerd") })
	least := patience
	for range 5 {
		began = time.Now()
		if err := w.begin(t, w.pod(nil), container("log", logID, plain1+"/ID")); err != nil {
			t.Error(err)
		}
		least = min(least, time.Since(began))
	}
	if least > answerMost/2 {
		t.Errorf("starts after it took at least %v", least)
	}
	if s := w.plugin.Status(); s.Late != 6 || s.Runtime == "" {
		t.Errorf("%+v", s)
	}
	close(let)
	w.await(t, "limit", func() bool {
		return w.begin(t, w.pod(nil), container("log", logID, plain1+"/ID")) == nil && w.limits(t, plain1) != ""
	})
}

// CRI-O's containers are put on record as containerd's are: the agent finds them over the CRI, and does the rest.
func TestCRIO(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", inSlices+"/crio-ID.scope", config)
	w.name = "cri-o"
	w.serve(t)
	pod := w.pod(map[string]string{"weir.io/write.web": "1M"})
	if err := w.begin(t, pod, container("web", webID, slice1+":crio:ID")); err != nil {
		t.Fatal(err)
	}
	if got := w.limits(t, inSlices+"/crio-"+webID+".scope"); got != "254:0 wbps=1000000 254:16 wbps=1000000" {
		t.Errorf("in force: %q", got)
	}
	w.await(t, "records, and word of both", func() bool {
		for _, name := range []string{"pod%3A" + uid, "containerd%3Ak8s.io%2F" + webID} {
			if _, err := os.Stat(filepath.Join(w.root, "var/lib/weir/plans", name+".json")); err != nil {
				return false
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.records(t) == 2 && fmt.Sprint(w.begun) == "[pod:"+uid+" containerd:"+webID+"]"
	})
}

// BenchmarkStart: what a start costs, without the kernel's and systemd's part: the pod and a
// container of its own limits, on plain files.
func BenchmarkStart(b *testing.B) {
	w := newWorld(b, "v2", plain1+"/ID", config)
	ctx := b.Context()
	go w.plugin.work(ctx)
	c := container("web", webID, plain1+"/ID")
	for i := 0; b.Loop(); i++ {
		pod := w.pod(map[string]string{"weir.io/write": fmt.Sprint(1_000_000 + i%2), "weir.io/write.web": fmt.Sprint(500_000 + i%2)})
		if err := w.plugin.limit(ctx, pod, c); err != nil {
			b.Fatal(err)
		}
	}
	if s := w.plugin.Status(); s.Late+s.Failed != 0 {
		b.Errorf("%+v", s)
	}
	b.ReportMetric(float64(w.plugin.Status().P99.Microseconds()), "p99-µs")
}

// Limits that the agent has set before, because the group was there, count as in force, and are not
// written again.
func TestAlreadyLimited(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	w.serve(t)
	for want := range uint64(2) {
		if err := w.begin(t, w.pod(nil), container("web", webID, plain1+"/ID")); err != nil {
			t.Fatal(err)
		}
		if s := w.plugin.Status(); s.Limited != want+1 || s.Starts != want+1 {
			t.Errorf("%+v", s)
		}
		w.mu.Lock()
		w.refuse = func(file, line string) error { return fmt.Errorf("%s: %s is written", file, line) }
		w.mu.Unlock()
	}
	if s := w.plugin.Status(); s.Failed != 0 {
		t.Errorf("%+v", s)
	}
}

// filled counts the texts that are not empty.
func filled(all ...string) (n int) {
	for _, one := range all {
		if one != "" {
			n++
		}
	}
	return n
}
