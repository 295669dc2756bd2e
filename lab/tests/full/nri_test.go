package full

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/containerd"
	"github.com/weir-io/weir/lab/environ"
)

const (
	nriSocket = "/run/nri/nri.sock"
	// nriRate is the limit of each pod, in bytes per second.
	nriRate = 2_000_000
)

// Where containerd asks weird before it starts a container, each program's first write is under its
// limit, by pods and by containers, with both cgroup drivers.
func TestNRI(t *testing.T) {
	e := needNRI(t, lab.Containerd, lab.Systemd, lab.V2, lab.FS("ext4"))
	t.Run("cgroupfs", func(t *testing.T) {
		n := newNRI(t, e, "cgroupfs")
		n.firstWrites(t, 3) // one for each way to ask
		n.refused(t)
		n.killed(t)
	})
	t.Run("systemd", func(t *testing.T) { newNRI(t, e, "systemd").firstWrites(t, 3) })
}

// The same for 200 pods, and what a short run leaves out.
func TestNRIMany(t *testing.T) {
	e := needNRI(t, lab.Whole, lab.Containerd, lab.Systemd, lab.V2, lab.FS("ext4"))
	n := newNRI(t, e, "cgroupfs")
	n.firstWrites(t, 200)
	n.buffered(t)
	n.plans(t)
}

func needNRI(t *testing.T, all ...lab.Requirement) environ.Environ {
	t.Helper()
	e := lab.Need(t, all...)
	if version := run(t, "containerd", "--version"); strings.Contains(version, " 1.6.") {
		t.Skipf("containerd 1.6 has no NRI for plugins of this kind: %s", version)
	}
	return e
}

// A nri is containerd with NRI, and weird that serves it.
type nri struct {
	e       environ.Environ
	cri     cri
	disk    *lab.TestDisk
	driver  string
	file    string // of the plans
	socket  string // weird's
	weird   *exec.Cmd
	log     *sharedLog
	pods    int                                          // that were started
	writers []nriPod                                     // those of rates that run
	inside  func(t *testing.T, command ...string) string // runs a command where weird runs; nil: that is the host
}

func newNRI(t *testing.T, e environ.Environ, driver string) *nri {
	t.Helper()
	n := prepareNRI(t, e, driver)
	n.serve(t)
	return n
}

// prepareNRI starts containerd with NRI, and what else its configuration is to have.
func prepareNRI(t *testing.T, e environ.Environ, driver string, more ...string) *nri {
	t.Helper()
	dir := t.TempDir()
	n := &nri{e: e, driver: driver, disk: lab.Disk(t, lab.FS("ext4")), file: filepath.Join(dir, "plans.yaml"), socket: filepath.Join(dir, "weird.sock")}
	const config = containerd.ConfigFile
	was, err := os.ReadFile(config)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	text := containerd.Config(nriSocket, driver == "systemd") + strings.Join(more, "")
	if err := errors.Join(os.MkdirAll(filepath.Dir(config), 0o755), os.WriteFile(config, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(config, was, 0o644); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { // kubelet would; systemd and the test's engine leave the groups of ended pods
		if driver == "systemd" {
			run(t, "systemctl", "stop", "kubepods.slice")
		} else {
			run(t, "find", filepath.Join(e.Cgroups.Unified, "kubepods"), "-depth", "-type", "d", "-exec", "rmdir", "{}", "+")
		}
	})
	containerd.Unit(t)
	start(t, "containerd")
	n.cri = newCRI(t)
	n.plan(t, "plans: {}")
	return n
}

// plan writes the plans.
func (n *nri) plan(t *testing.T, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(n.file+".new", []byte(text), 0o600), os.Rename(n.file+".new", n.file)); err != nil {
		t.Fatal(err)
	}
}

// serve starts weird.
func (n *nri) serve(t *testing.T) {
	t.Helper()
	log := &sharedLog{}
	cmd := exec.Command("weird", "run", "--nri", nriSocket, "--plans", n.file, "--socket", n.socket)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.weird, n.log = cmd, log
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("weird:\n%s", log)
		}
	})
	var s *api.AgentRuntime
	lab.Await(t, 20*time.Second, "weird at containerd", func() bool { s = n.status(t); return s != nil && strings.HasPrefix(s.Name, "containerd ") })
	t.Logf("%s asks weird", s.Name)
}

// status is what weird says of the runtime; nil: nothing yet.
func (n *nri) status(t *testing.T) *api.AgentRuntime {
	t.Helper()
	out, err := exec.Command("weird", "status", "--json", "--socket", n.socket).Output()
	if err != nil {
		return nil // it has just started
	}
	var a api.Agent
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return a.Runtime
}

// A nriPod is the groups of a pod and of its container.
type nriPod struct {
	dir, container string // its groups
	end            func()
}

// group is where kubelet would have a pod, as the CRI names it and as the kernel does.
func (n *nri) group(uid string) (parent, path string) {
	if n.driver == "systemd" {
		slice := "kubepods-besteffort-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
		return slice, "/kubepods.slice/kubepods-besteffort.slice/" + slice
	}
	parent = "/kubepods/besteffort/pod" + uid
	return parent, parent
}

// begin starts a pod whose only container, "main", has directories of the host and runs a command.
func (n *nri) begin(t *testing.T, namespace string, annotations map[string]string, mounts map[string]string, command ...string) (pod nriPod, err error) {
	t.Helper()
	n.pods++
	uid := fmt.Sprintf("8f14e45f-ceea-467f-a8d0-%012x", n.pods)
	parent, path := n.group(uid)
	network := string(grpc.AppendNumber(nil, 1, 2)) // NamespaceMode NODE
	config := []byte(message(map[grpc.FieldNumber]string{1: message(map[grpc.FieldNumber]string{1: fmt.Sprint("pod-", n.pods), 2: uid, 3: namespace})}))
	for key, value := range annotations {
		config = grpc.AppendString(config, 7, message(map[grpc.FieldNumber]string{1: key, 2: value}))
	}
	config = grpc.AppendString(config, 8, message(map[grpc.FieldNumber]string{1: parent, 2: message(map[grpc.FieldNumber]string{1: network})}))
	sandbox, err := try(t, "RunPodSandbox", message(map[grpc.FieldNumber]string{1: string(config)}))
	if err != nil {
		return pod, err
	}
	pod.end = sync.OnceFunc(func() {
		n.cri.ask(t, "StopPodSandbox", message(map[grpc.FieldNumber]string{1: sandbox}))
		n.cri.ask(t, "RemovePodSandbox", message(map[grpc.FieldNumber]string{1: sandbox}))
	})
	t.Cleanup(pod.end)
	its := grpc.AppendString(nil, 1, message(map[grpc.FieldNumber]string{1: "main"}))
	its = grpc.AppendString(its, 2, message(map[grpc.FieldNumber]string{1: n.cri.image}))
	for _, word := range command {
		its = grpc.AppendString(its, 3, word)
	}
	for at, dir := range mounts {
		its = grpc.AppendString(its, 7, message(map[grpc.FieldNumber]string{1: at, 2: dir}))
	}
	for key, value := range map[string]string{"io.kubernetes.container.name": "main", "io.kubernetes.pod.uid": uid} {
		its = grpc.AppendString(its, 9, message(map[grpc.FieldNumber]string{1: key, 2: value}))
	}
	id, err := try(t, "CreateContainer", message(map[grpc.FieldNumber]string{1: sandbox, 2: string(its), 3: string(config)}))
	if err != nil {
		return pod, err
	}
	pod.dir = filepath.Join(n.e.Cgroups.Unified, path)
	pod.container = filepath.Join(pod.dir, id)
	if n.driver == "systemd" {
		pod.container = filepath.Join(pod.dir, "cri-containerd-"+id+".scope")
	}
	_, err = try(t, "StartContainer", message(map[grpc.FieldNumber]string{1: id}))
	return pod, err
}

// try makes a call that may be refused, and returns the id that its answer begins with.
func try(t *testing.T, method, request string) (id string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandMax/3)
	defer cancel()
	answer, err := grpc.Call(ctx, containerd.Socket, "/runtime.v1.RuntimeService/"+method, []byte(request))
	if err != nil {
		return "", err
	}
	return id, grpc.Fields(answer, func(number grpc.FieldNumber, value []byte) error {
		if number == 1 {
			id = string(value)
		}
		return nil
	})
}

// buffered has a pod write through the page cache.
func (n *nri) buffered(t *testing.T) {
	t.Helper()
	disk := lab.Disk(t, lab.FS("ext4"))
	rate := lab.Scaled(n.e, 10e6)
	pod, err := n.begin(t, "default", map[string]string{"weir.io/write": fmt.Sprint(rate)}, map[string]string{"/data": disk.Dir}, "/bin/sh", "-c", endless)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // what the promise allows
	lab.Ratio(t, "through the page cache", float64(rate), lab.Written, func() float64 {
		arrivals := watchLimited(t, n.e, pod.dir, disk)
		return arrivals.RateOver(t, 6*time.Second)
	})
}

// refused has pods ask for what is wrong, and a pod without weir's annotations start all the same.
func (n *nri) refused(t *testing.T) {
	t.Helper()
	for key, value := range map[string]string{"weir.io/write": "10MB/s", "weir.io/on.../x": "write=1", "weir.io/plan": "\x1b[2J"} {
		_, err := n.begin(t, "default", map[string]string{key: value}, nil, "/bin/sleep", "100000")
		if err == nil || !strings.Contains(err.Error(), "weir: annotation "+key+": ") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := n.begin(t, "default", map[string]string{"other.io/write": "10MB/s"}, nil, "/bin/sleep", "100000"); err != nil {
		t.Error(err)
	}
}

// plans has pods of a namespace get what a plan says, and what it says later.
func (n *nri) plans(t *testing.T) {
	t.Helper()
	plan := func(rate int) {
		n.plan(t, fmt.Sprintf("plans: {small: {write: %d}}\nassign: [{pod: {namespace: prod}, plan: small}]\n", rate))
	}
	loads := strings.Count(n.log.String(), "plans loaded")
	seen := func() bool { return strings.Count(n.log.String(), "plans loaded") > loads }
	plan(3_000_000)
	lab.Await(t, 5*time.Second, "the plan", seen)
	pod, err := n.begin(t, "prod", nil, map[string]string{"/data": n.disk.Dir}, "/bin/sleep", "100000")
	if err != nil {
		t.Fatal(err)
	}
	rule := func() string { return ruleIn(t, filepath.Join(pod.dir, "io.max"), n.disk.Number) }
	if got := rule(); got != ruleOf(n.e, 3_000_000) {
		t.Errorf("the rule is %q", got)
	}
	plan(4_000_000)
	lab.Await(t, time.Second, "the changed plan", func() bool { return rule() == ruleOf(n.e, 4_000_000) })
}

// killed kills weird: what is limited stays so, a pod starts without, and is limited when weird is
// back.
func (n *nri) killed(t *testing.T) {
	t.Helper()
	asks := map[string]string{"weir.io/write": fmt.Sprint(nriRate)}
	mounts := map[string]string{"/data": n.disk.Dir}
	rule := func(p nriPod) string { return ruleIn(t, filepath.Join(p.dir, "io.max"), n.disk.Number) }
	first, err := n.begin(t, "default", asks, mounts, "/bin/sleep", "100000")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.weird.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = n.weird.Wait()
	began := time.Now()
	second, err := n.begin(t, "default", asks, mounts, "/bin/sleep", "100000")
	if err != nil {
		t.Fatalf("without weird: %v", err)
	}
	t.Logf("without weird a pod starts in %v", time.Since(began))
	if got := [2]string{rule(first), rule(second)}; got != [2]string{ruleOf(n.e, nriRate), ""} {
		t.Errorf("without weird the rules are %q", got)
	}
	began = time.Now()
	n.serve(t)
	lab.Await(t, time.Second, "the limit of what started without weird", func() bool { return rule(second) == ruleOf(n.e, nriRate) })
	t.Logf("limited %v after weird's start", time.Since(began))
	if got := rule(first); got != ruleOf(n.e, nriRate) {
		t.Errorf("the rule is %q", got)
	}
}
