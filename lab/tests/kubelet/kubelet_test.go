package kubelet_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/node"
)

// rate is the limit of each pod's writes, in bytes per second.
const rate = 2_000_000

// planned are the plans of the node: a pod can choose one.
var planned = fmt.Sprintf("plans: {small: {write: %d}}\nallow-labels: [small]\n", rate)

// Static pods of each QoS class are limited from their programs' first writes on: when they start, when their
// manifest changes, when their program is started again; and kubelet, weird and containerd can be started
// again meanwhile.
func TestKubelet(t *testing.T) {
	e := lab.Need(t, lab.Kubelet, lab.Guest, lab.Root, lab.Containerd, lab.Systemd, lab.V2, lab.FS("ext4"))
	for _, driver := range []string{"systemd", "cgroupfs"} {
		t.Run(driver, func(t *testing.T) {
			k := newNode(t, e, driver)
			if !t.Run("start", k.start) || !t.Run("killed program", k.killedProgram) || driver != "systemd" {
				return
			}
			t.Run("changed manifest", k.changedManifest)
			t.Run("buffered", k.buffered)
			t.Run("kubelet restarts", k.kubeletRestarts)
			t.Run("weird is killed", k.weirdIsKilled)
			t.Run("containerd restarts", k.containerdRestarts)
			t.Run("wrong annotation", k.wrongAnnotation)
		})
	}
}

// A kubeletNode is a node and its pods.
type kubeletNode struct {
	*node.Node
	e                               environ.Environ
	disk                            *lab.TestDisk
	guaranteed, burstable, best     *node.Pod
	container, unlimited, throughIt *node.Pod
}

func newNode(t *testing.T, e environ.Environ, driver string) *kubeletNode {
	t.Helper()
	disk := lab.Disk(t, lab.FS("ext4"))
	pod := func(name, class, writes, key, value string) *node.Pod {
		return &node.Pod{Name: driver + "-" + name, QoS: class, Host: disk.Dir, Writes: writes, Annotations: map[string]string{key: value}}
	}
	k := &kubeletNode{
		e: e, disk: disk,
		guaranteed: pod("guaranteed", "Guaranteed", node.Data, "weir.io/plan", "small"),
		burstable:  pod("burstable", "Burstable", node.Cache, "weir.io/on.cache", fmt.Sprintf("write=%d", rate)),
		best:       pod("best-effort", "BestEffort", node.Data, "weir.io/write", fmt.Sprint(rate)),
		container:  pod("container", "BestEffort", node.Data, "weir.io/write.main", fmt.Sprint(rate)),
		unlimited:  pod("unlimited", "BestEffort", node.Data, "example.com/write", fmt.Sprint(rate)),
		throughIt:  pod("buffered", "BestEffort", node.Data, "weir.io/write", fmt.Sprint(lab.Scaled(e, 10e6))),
	}
	k.throughIt.Command = "while :; do /bin/busybox dd if=/dev/zero of=/data/buffered bs=65536 count=16000 conv=notrunc 2>/dev/null; done"
	k.Node = node.New(t, e, driver, planned)
	t.Cleanup(func() { k.Stop(t, append(k.limited(), k.unlimited, k.throughIt)...) })
	k.Start(t)
	return k
}

// limited are the pods that measure themselves under a limit.
func (k *kubeletNode) limited() []*node.Pod {
	return []*node.Pod{k.guaranteed, k.burstable, k.best, k.container}
}

// measure has the programs of pods start anew, and compares what they measure from their first write on with
// their limit. Those that the machine was too busy for start once more.
func (k *kubeletNode) measure(t *testing.T, what string, limit float64, start func(testing.TB, *node.Pod), pods ...*node.Pod) {
	t.Helper()
	lab.Ratio(t, what, limit, lab.Written, func() float64 {
		number := make([]int, len(pods))
		for i, p := range pods {
			number[i] = k.Starts(p)
			start(t, p)
		}
		worst := limit
		var again []*node.Pod
		for i, p := range pods {
			got := k.Rate(t, p, number[i])
			t.Logf("pod %s wrote %.3f of its limit", p.Name, got/limit)
			if math.Abs(got-limit) > math.Abs(worst-limit) {
				worst = got
			}
			if got < lab.Written.Low*limit || got > lab.Written.High*limit {
				again = append(again, p)
			}
		}
		pods = again
		return worst
	})
}

// rule is what a pod's group has for the disk that the pod writes to, or its container's group has where the
// annotation is about that.
func (k *kubeletNode) rule(t *testing.T, p *node.Pod) string {
	t.Helper()
	s := k.Running(t, p)
	group, number := k.Group(s), k.disk.Number
	if p == k.container {
		group = k.ContainerGroup(s)
	}
	if p.Writes == node.Cache {
		number = rootDisk(t)
	}
	return ruleIn(t, group, number)
}

// stand fails the test unless the pods' rules are in force.
func (k *kubeletNode) stand(t *testing.T, when string, pods ...*node.Pod) {
	t.Helper()
	for _, p := range pods {
		if got := k.rule(t, p); got != ruleOf(rate) {
			t.Errorf("%s pod %s has the rule %q", when, p.Name, got)
		}
	}
}

func ruleOf(bytesPerSec int) string {
	return fmt.Sprintf("rbps=max wbps=%d riops=max wiops=max", bytesPerSec)
}

// ruleIn is a group's rule for a disk.
func ruleIn(t *testing.T, group string, disk blkdev.Number) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(group, "io.max"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if number, rest, _ := strings.Cut(strings.TrimSpace(line), " "); number == disk.String() {
			return rest
		}
	}
	return ""
}

// rootDisk is the disk that the system, and so an emptyDir, is on.
func rootDisk(t *testing.T) blkdev.Number {
	t.Helper()
	chain, err := blkdev.New("/").Resolve(t.Context(), "/var/lib/kubelet")
	if err != nil || len(chain.Devices) != 1 {
		t.Fatalf("the disk of /var/lib/kubelet: %v, %v", chain.Devices, err)
	}
	return chain.Devices[0].Number
}

// start has kubelet start all pods.
func (k *kubeletNode) start(t *testing.T) {
	before := k.AwaitWeird(t)
	begun := 0
	put := func(t testing.TB, p *node.Pod) {
		begun++
		k.Put(t, p)
	}
	k.measure(t, "pods that kubelet starts", rate, put, k.limited()...)
	for _, p := range k.limited() {
		s := k.Running(t, p)
		if s.QoS != p.QoS || s.Annotations["kubernetes.io/config.source"] != "file" || s.Restarts != 0 {
			t.Errorf("kubelet says of %s: %+v", p.Name, s)
		}
	}
	k.stand(t, "running,", k.limited()...)
	after := k.AwaitWeird(t)
	if n := uint64(begun); after.Starts-before.Starts != n || after.Limited-before.Limited != n || after.Late+after.Failed+after.Refused != 0 {
		t.Errorf("%d pods were started; before, weird said %+v, now %+v", begun, before, after)
	}
	t.Logf("weird answered within %.1f ms (p99)", after.P99Seconds*1000)

	lab.Free(t, "a pod without weir's annotations", 3*rate, func() float64 {
		number := k.Starts(k.unlimited)
		k.Put(t, k.unlimited)
		return k.Rate(t, k.unlimited, number)
	})
	k.Remove(t, k.unlimited)
}

// killedProgram has kubelet start the programs of pods again.
func (k *kubeletNode) killedProgram(t *testing.T) {
	was := map[*node.Pod]node.State{}
	for _, p := range k.limited() {
		was[p] = k.Running(t, p)
	}
	k.measure(t, "programs that were killed", rate, k.KillProgram, k.limited()...)
	for _, p := range k.limited() {
		var now node.State
		lab.Await(t, 20*time.Second, "kubelet to count the restart", func() bool { now = k.Running(t, p); return now.Restarts > was[p].Restarts })
		if now.UID != was[p].UID || now.Container == was[p].Container {
			t.Errorf("pod %s was %+v, is %+v", p.Name, was[p], now)
		}
	}
	k.stand(t, "started again,", k.limited()...)
}
