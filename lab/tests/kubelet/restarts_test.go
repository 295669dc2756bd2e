package kubelet_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/node"
)

// changedManifest changes a pod's annotation in its manifest.
func (k *kubeletNode) changedManifest(t *testing.T) {
	const more = 3_000_000
	was := k.Running(t, k.best)
	set := func(limit int) { k.best.Annotations["weir.io/write"] = fmt.Sprint(limit) }
	set(more)
	k.measure(t, "a changed annotation", more, k.Put, k.best)
	if now := k.Running(t, k.best); now.UID == was.UID {
		t.Errorf("it is the same pod: %+v", now)
	}
	if got := k.rule(t, k.best); got != ruleOf(more) {
		t.Errorf("the rule is %q", got)
	}
	set(rate)
	k.measure(t, "the annotation from before", rate, k.Put, k.best)
}

// buffered has a pod write through the page cache.
func (k *kubeletNode) buffered(t *testing.T) {
	limit := lab.Scaled(k.e, 10e6)
	disk := lab.Disk(t, lab.FS("ext4"))
	k.throughIt.Host = disk.Dir
	k.Put(t, k.throughIt)
	group := k.Group(k.Running(t, k.throughIt))
	defer func() {
		k.Remove(t, k.throughIt)
		lab.Await(t, time.Minute, "the end of the pod", func() bool { _, is := k.State(t, k.throughIt); return !is && !exists(group) })
	}()
	if got := ruleIn(t, group, disk.Number); got != ruleOf(limit) {
		t.Errorf("the rule is %q", got)
	}
	counter := lab.Charged(group, disk.Number)
	lab.Await(t, 30*time.Second, "writeback", func() bool { n, _ := counter(); return n > int64(2*limit) })
	lab.Ratio(t, "through the page cache", float64(limit), lab.Written, func() float64 {
		arrivals := lab.WatchWriteback(group, disk.Number)
		return arrivals.RateOver(t, 6*time.Second)
	})
}

// kubeletRestarts has systemd start kubelet again: it takes over what runs.
func (k *kubeletNode) kubeletRestarts(t *testing.T) {
	was := map[*node.Pod]node.State{}
	for _, p := range k.limited() {
		was[p] = k.Running(t, p)
	}
	systemctl(t, "restart", "kubelet")
	for _, p := range k.limited() {
		if now := k.Running(t, p); now.UID != was[p].UID || now.Container != was[p].Container {
			t.Errorf("pod %s was %+v, is %+v", p.Name, was[p], now)
		}
	}
	k.stand(t, "with another kubelet,", k.limited()...)
	k.measure(t, "a program that another kubelet starts again", rate, k.KillProgram, k.guaranteed)
}

// weirdIsKilled kills weird. systemd starts it again.
func (k *kubeletNode) weirdIsKilled(t *testing.T) {
	killed := k.Kill(t, "weird")
	began := time.Now()
	k.stand(t, "just after weird was killed,", k.limited()...)
	lab.Await(t, 30*time.Second, "systemd to start weird again", func() bool { pid := node.MainPID(t, "weird"); return pid != "0" && pid != killed })
	k.stand(t, "with a new weird,", k.limited()...)
	s := k.AwaitWeird(t)
	t.Logf("%s asks the new weird %v after the old one was killed", s.Name, time.Since(began).Round(time.Millisecond))
	k.stand(t, "with a new weird that containerd asks,", k.limited()...)
	k.measure(t, "a program that starts under the new weird", rate, k.KillProgram, k.burstable)
}

// containerdRestarts has systemd start containerd again. Its containers go on.
func (k *kubeletNode) containerdRestarts(t *testing.T) {
	was := k.Running(t, k.container)
	before := k.AwaitWeird(t)
	systemctl(t, "restart", "containerd")
	lab.Await(t, 30*time.Second, "weird at the new containerd", func() bool { return k.AwaitWeird(t).Reconnects > before.Reconnects })
	k.stand(t, "with a new containerd,", k.limited()...)
	if now := k.Running(t, k.container); now.Container != was.Container {
		t.Errorf("the container was %+v, is %+v", was, now)
	}
	k.measure(t, "a program that the new containerd starts", rate, k.KillProgram, k.container)
}

// wrongAnnotation has a pod ask for what is no quantity: kubelet says why it does not start, and it starts
// once it is corrected.
func (k *kubeletNode) wrongAnnotation(t *testing.T) {
	k.best.Annotations["weir.io/write"] = "2MB/s"
	k.Put(t, k.best)
	lab.Await(t, time.Minute, "kubelet to say what is wrong", func() bool {
		out, err := exec.Command("journalctl", "--no-pager", "--quiet", "--boot", "--output=cat", "--unit=kubelet").Output()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, k.best.Name) && strings.Contains(line, "weir: annotation weir.io/write: ") {
				return err == nil
			}
		}
		return false
	})
	if s, is := k.State(t, k.best); !is || s.Running {
		t.Errorf("the pod with a wrong annotation is %+v", s)
	}
	k.best.Annotations["weir.io/write"] = fmt.Sprint(rate)
	k.measure(t, "the corrected annotation", rate, k.Put, k.best)
}

func systemctl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("systemctl", args...).CombinedOutput(); err != nil {
		t.Fatalf("systemctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
