package kubelet_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/node"
)

// volumes has a pod for each kind of volume, which writes there from its start on. All write at once.
func (c *cluster) volumes(t *testing.T) {
	const claim = "books"
	c.PutLocal(t, claim, c.claimed.Dir)
	word := fmt.Sprintf("write=%d", rate)
	pods := []*node.Pod{
		{Name: "on-rootfs", Writes: node.Root, Annotations: map[string]string{"weir.io/on.rootfs": word}},
		{Name: "on-empty-dir", Writes: node.Cache, Annotations: map[string]string{"weir.io/on.cache": word}},
		{Name: "on-host-path", Writes: node.Data, Annotations: map[string]string{"weir.io/on.any": word + " path=" + node.Data}},
		{Name: "on-claim", Writes: node.Claimed, Claim: claim, Annotations: map[string]string{"weir.io/on." + claim: word}},
	}
	for _, p := range pods {
		p.QoS, p.Host = "BestEffort", c.disk.Dir
	}
	defer c.end(t, pods...)
	left := pods
	lab.Ratio(t, "pods that write to one volume each", rate, lab.Written, func() float64 {
		var again []*node.Pod
		worst := float64(rate)
		c.end(t, left...)
		for i, got := range c.rates(t, left...) {
			t.Logf("%s wrote %.3f of its limit", left[i].Name, got/rate)
			if math.Abs(got-rate) > math.Abs(worst-rate) {
				worst = got
			}
			if got < lab.Written.Low*rate || got > lab.Written.High*rate {
				again = append(again, left[i])
			}
		}
		left = again
		return worst
	})
}

// rates starts pods, and returns what each measures from its program's first write on.
func (c *cluster) rates(t *testing.T, pods ...*node.Pod) (all []float64) {
	t.Helper()
	numbers := make([]int, len(pods))
	for i, p := range pods {
		numbers[i] = c.Starts(p)
		c.Put(t, p)
	}
	for i, p := range pods {
		all = append(all, c.Rate(t, p, numbers[i]))
	}
	return all
}

// end removes pods, and waits until they are gone.
func (c *cluster) end(t *testing.T, pods ...*node.Pod) {
	t.Helper()
	args := []string{"delete", "pod", "--ignore-not-found"}
	for _, p := range pods {
		args = append(args, p.Name)
	}
	node.Kubectl(t, args...)
}

// twoContainers has the two containers of a pod share its limit, and those of another have one each.
func (c *cluster) twoContainers(t *testing.T) {
	shared := &node.Pod{Name: "shared", Annotations: map[string]string{"weir.io/write": fmt.Sprint(rate)}}
	each := &node.Pod{Name: "each", Annotations: map[string]string{"weir.io/write.main": fmt.Sprint(rate), "weir.io/write.side": fmt.Sprint(rate / 2)}}
	for _, p := range []*node.Pod{shared, each} {
		p.QoS, p.Host, p.Writes, p.Two = "BestEffort", c.disk.Dir, node.Data, true
		defer c.end(t, p)
	}
	both := func(p *node.Pod) (main, side load.Result) {
		c.end(t, p)
		a, b := c.Starts(p), c.Starts(p.Beside())
		c.Put(t, p)
		return c.Result(t, p, a), c.Result(t, p.Beside(), b)
	}
	lab.Ratio(t, "two containers that share a limit", rate, lab.Written, func() float64 {
		main, side := both(shared) // one of them is alone for a while, and has all of it
		return float64(main.Bytes+side.Bytes) / time.Duration(max(main.Ended, side.Ended)-min(main.Began, side.Began)).Seconds()
	})
	c.end(t, shared)
	lab.Ratio(t, "two containers with one each", 1, lab.Written, func() float64 {
		one, other := both(each)
		main, side := one.BytesPerSec()/rate, other.BytesPerSec()/(rate/2)
		t.Logf("they wrote %.3f and %.3f of their limits", main, side)
		if math.Abs(main-1) > math.Abs(side-1) {
			return main
		}
		return side
	})
}
