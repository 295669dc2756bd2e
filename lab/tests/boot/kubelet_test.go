package boot_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/node"
)

// After a boot of a node kubelet starts its pods again, and each is limited from its program's first write
// on: systemd starts weird before kubelet.
func TestKubeletBoot(t *testing.T) {
	e := lab.Need(t, lab.Kubelet, lab.Guest, lab.Root, lab.Systemd, lab.Lane("uml"), lab.Containerd, lab.V2)
	const rate = 2_000_000
	var pods []*node.Pod
	for _, class := range []string{"Guaranteed", "Burstable", "BestEffort"} {
		pods = append(pods, &node.Pod{Name: "boot-" + strings.ToLower(class), QoS: class, Host: node.Scratch, Writes: node.Data,
			Annotations: map[string]string{"weir.io/write": fmt.Sprint(rate)}})
	}
	if !lab.Rebooted() {
		n := node.New(t, e, "systemd", "plans: {}\n")
		n.Start(t)
		run(t, "systemctl", "enable", "containerd", "weird", "kubelet")
		for _, p := range pods {
			n.Put(t, p)
		}
		for _, p := range pods {
			t.Logf("before the boot pod %s wrote %.3f of its limit", p.Name, n.Rate(t, p, 0)/rate)
		}
		lab.Reboot(t)
	}
	n := node.Again(t, e, "systemd")
	t.Cleanup(func() { n.Stop(t, pods...) })
	start := func() { run(t, "systemctl", "start", "multi-user.target") } // the guest's own target has nothing in it but the lab
	lab.Ratio(t, "the pod farthest from its limit after a boot, from its first write on", rate, lab.Written, func() float64 {
		numbers := make([]int, len(pods))
		for i, p := range pods {
			numbers[i] = n.Starts(p)
		}
		start()
		start = func() { // another time, should the machine have been too busy to tell
			for _, p := range pods {
				n.Put(t, p)
			}
		}
		worst := float64(rate)
		for i, p := range pods {
			got := n.Rate(t, p, numbers[i])
			t.Logf("after the boot pod %s wrote %.3f of its limit", p.Name, got/rate)
			if math.Abs(got-rate) > math.Abs(worst-rate) {
				worst = got
			}
		}
		return worst
	})
	disk := rootDisk(t)
	for _, p := range pods {
		if got := rule(t, e, n.Group(n.Running(t, p)), disk); got != fmt.Sprint(rate) {
			t.Errorf("after the boot the rule of %s is %q", p.Name, got)
		}
	}
	s := n.AwaitWeird(t)
	if s.Late+s.Failed+s.Refused != 0 || s.Limited < uint64(len(pods)) {
		t.Errorf("weird says %+v", s)
	}
	t.Logf("weird answered within %.1f ms (p99)", s.P99Seconds*1000)
}
