package kubelet_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/contrib"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/containerd"
	"github.com/weir-io/weir/lab/node"
	"github.com/weir-io/weir/tools/image/oci"
)

// weirImage is what the chart calls weir's image here.
const weirImage = "docker.io/library/weir:lab"

// Helm installs weir's chart in a cluster of one node. Its DaemonSet limits pods from their programs' first writes
// on, takes changed annotations from the API server, and tells by an event, an annotation and metrics what it did.
func TestCluster(t *testing.T) {
	e := lab.Need(t, lab.Cluster, lab.Guest, lab.Root, lab.Containerd, lab.Systemd, lab.V2, lab.FS("ext4"))
	c := &cluster{disk: lab.Disk(t, lab.FS("ext4")), claimed: lab.Disk(t, lab.FS("ext4")), Node: node.NewCluster(t, e)}
	c.web = &node.Pod{Name: "web", QoS: "Burstable", Host: c.disk.Dir, Writes: node.Data, Annotations: map[string]string{"weir.io/write": fmt.Sprint(rate)}}
	for _, part := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"chart", c.chart}, {"start", c.start}, {"annotation", c.annotation}, {"namespace", c.namespace}, {"told", c.told}, {"metrics", c.metrics},
		{"plugin", c.plugin}, {"volumes", c.volumes}, {"two containers", c.twoContainers}, {"rollout", c.rollout}, {"memory", c.memory},
	} {
		if !t.Run(part.name, part.do) {
			t.Log(node.Kubectl(t, "get", "pods,events", "--all-namespaces", "-o", "wide"))
			return
		}
	}
}

// A cluster is one, with a pod that has a limit.
type cluster struct {
	*node.Node
	disk, claimed *lab.TestDisk
	web           *node.Pod
}

// chart imports weir's image and installs the chart.
func (c *cluster) chart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.tar")
	importable(t, file)
	containerd.Import(t, file, weirImage)
	dir := filepath.Join(t.TempDir(), "contrib")
	if err := os.CopyFS(dir, contrib.Chart); err != nil {
		t.Fatal(err)
	}
	plans := fmt.Sprintf(`plans={"plans":{"small":{"write":%d}},"allow-labels":["small"]}`, rate)
	_, noTracing := os.Stat("/sys/kernel/tracing") // user-mode Linux has no trace points
	began := time.Now()
	out, err := exec.Command("helm", "install", "weir", filepath.Join(dir, "kubernetes/chart"), "--namespace", "kube-system", "--set", "image.repository=docker.io/library/weir,image.tag=lab",
		"--set", fmt.Sprintf("kubeAPI.enabled=true,metrics.enabled=true,trace.enabled=%v", noTracing == nil), "--set-json", plans, "--wait", "--timeout", "90s").CombinedOutput()
	if err != nil {
		t.Fatalf("helm install: %v\n%s\n%s", err, out, describe(t))
	}
	t.Logf("installed, and weir ready, after %.1f s", time.Since(began).Seconds())
}

// describe returns what kubectl reports about weir's pods, with their logs.
func describe(t *testing.T) string {
	out, err := exec.Command("sh", "-c", "kubectl -n kube-system describe pods; kubectl -n kube-system logs -l app.kubernetes.io/name=weir --all-containers --tail 50").CombinedOutput()
	return fmt.Sprintf("%s (%v)", out, err)
}

// importable writes the image of the weir and weird that are in PATH.
func importable(t *testing.T, file string) {
	t.Helper()
	var programs [2][]byte
	for i, name := range []string{"weir", "weird"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if programs[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	if err := oci.Write(w, oci.Weir(weirImage, "lab", runtime.GOARCH, time.Unix(0, 0), programs[0], programs[1], nil)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// wrote is what a pod that the API server is given measures from its program's first write on.
func (c *cluster) wrote(t *testing.T, p *node.Pod) float64 {
	t.Helper()
	node.Kubectl(t, "delete", "pod", p.Name, "--ignore-not-found")
	number := c.Starts(p)
	c.Put(t, p)
	return c.Rate(t, p, number)
}

func (c *cluster) start(t *testing.T) {
	lab.Ratio(t, "a pod of the cluster", rate, lab.Written, func() float64 { return c.wrote(t, c.web) })
	if got := c.rule(t); got != ruleOf(rate) {
		t.Errorf("its rule is %q", got)
	}
	free := &node.Pod{Name: "free", QoS: "BestEffort", Host: c.disk.Dir, Writes: node.Data}
	lab.Free(t, "a pod without annotations", 3*rate, func() float64 { return c.wrote(t, free) })
	node.Kubectl(t, "delete", "pod", free.Name)
}

// rule is that of the pod's group.
func (c *cluster) rule(t *testing.T) string {
	return ruleIn(t, c.Group(c.Running(t, c.web)), c.disk.Number)
}

// annotation changes the annotation of the pod that runs: its new limit is in force within a second.
func (c *cluster) annotation(t *testing.T) {
	for i := range 5 {
		want := rate + (i+1)*100_000
		node.Kubectl(t, "annotate", "pod", c.web.Name, fmt.Sprintf("weir.io/write=%d", want), "--overwrite")
		began := time.Now()
		lab.Await(t, time.Second, "the new limit", func() bool { return c.rule(t) == ruleOf(want) })
		t.Logf("in force %.0f ms after kubectl had ended", 1000*time.Since(began).Seconds())
	}
	node.Kubectl(t, "annotate", "pod", c.web.Name, fmt.Sprintf("weir.io/write=%d", rate), "--overwrite")
	lab.Await(t, time.Second, "the limit from before", func() bool { return c.rule(t) == ruleOf(rate) })
}

// namespace has a namespace choose the plan of its pods.
func (c *cluster) namespace(t *testing.T) {
	node.Kubectl(t, "annotate", "namespace", "default", "weir.io/plan=small")
	p := &node.Pod{Name: "planned", QoS: "BestEffort", Host: c.disk.Dir, Writes: node.Data}
	lab.Ratio(t, "a pod whose namespace names a plan", rate, lab.Written, func() float64 { return c.wrote(t, p) })
	node.Kubectl(t, "annotate", "namespace", "default", "weir.io/plan-")
	node.Kubectl(t, "delete", "pod", p.Name)
}

// told waits until weir has said of the pod that its limits are in force, and, of a wrong annotation, what is wrong.
func (c *cluster) told(t *testing.T) {
	events := func() string {
		return node.Kubectl(t, "get", "events", "--field-selector", "involvedObject.name="+c.web.Name, "-o", `jsonpath={range .items[*]}{.reason} {.message}{"\n"}{end}`)
	}
	lab.Await(t, 30*time.Second, "the event LimitsInForce or LimitsHeld", func() bool { return strings.Contains(events(), "Limits") })
	node.Kubectl(t, "annotate", "pod", c.web.Name, "weir.io/write=10MB/s", "--overwrite")
	lab.Await(t, 30*time.Second, "the event AnnotationsWrong", func() bool { return strings.Contains(events(), "AnnotationsWrong") })
	if got := c.rule(t); got != ruleOf(rate) {
		t.Errorf("with a wrong annotation the rule is %q", got)
	}
	node.Kubectl(t, "annotate", "pod", c.web.Name, fmt.Sprintf("weir.io/write=%d", rate), "--overwrite")
	status := func() string {
		return node.Kubectl(t, "get", "pod", c.web.Name, "-o", `jsonpath={.metadata.annotations.weir\.io/status}`)
	}
	lab.Await(t, 30*time.Second, "the annotation weir.io/status", func() bool {
		s := status()
		return strings.HasPrefix(s, "in force") || strings.HasPrefix(s, "held")
	})
	t.Logf("weir.io/status: %s\n%s", status(), events())
}

// metrics reads what weir's pod serves.
func (c *cluster) metrics(t *testing.T) {
	address := node.Kubectl(t, "-n", "kube-system", "get", "pods", "-l", "app.kubernetes.io/name=weir", "-o", "jsonpath={.items[0].status.podIP}")
	var limit, info string
	lab.Await(t, 20*time.Second, "the pod among the metrics", func() bool {
		limit, info = "", ""
		r, err := http.Get("http://" + address + ":9847/metrics")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			line := lines.Text()
			if strings.HasPrefix(line, "weir_group_info{") && strings.Contains(line, `namespace="default"`) && strings.Contains(line, `pod="web"`) {
				info = line
			}
			if strings.HasPrefix(line, "weir_") && strings.Contains(line, "limit") && strings.HasSuffix(line, " 2e+06") {
				limit = line
			}
		}
		return limit != "" && info != ""
	})
	t.Logf("%s\n%s", info, limit)
}

// rollout replaces weir's pod: the limit of a pod that runs stays.
func (c *cluster) rollout(t *testing.T) {
	node.Kubectl(t, "-n", "kube-system", "rollout", "restart", "daemonset/weir")
	node.Kubectl(t, "-n", "kube-system", "rollout", "status", "daemonset/weir", "--timeout=55s")
	if got := c.rule(t); got != ruleOf(rate) {
		t.Errorf("after weir's pod was replaced, the rule is %q", got)
	}
	lab.Ratio(t, "a pod that starts after that", rate, lab.Written, func() float64 { return c.wrote(t, c.web) })
}

// memory says what everything takes.
func (c *cluster) memory(t *testing.T) {
	for _, unit := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "containerd"} {
		t.Logf("%s has %d MiB", unit, node.MemoryOf(t, unit)>>20)
	}
	for pid, name := range node.Processes(t, "weird") {
		t.Logf("%s (%s) has %d MiB", name, pid, node.Memory(t, pid)>>20)
	}
	if err := exec.Command("kubectl", "delete", "pod", c.web.Name).Run(); err != nil {
		t.Error(err)
	}
}
