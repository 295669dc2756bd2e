package full

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// podsAtOnce is how many pods run at once: containerd takes 10 MB or more for each.
const podsAtOnce = 20

// firstWrites starts pods whose programs write at once, past the page cache, and measure themselves
// from the first write on. Those that were not at their limit are started again where the machine was too
// busy to tell.
func (n *nri) firstWrites(t *testing.T, pods int) {
	t.Helper()
	before, begun := n.status(t), 0
	left := make([]int, pods)
	for i := range left {
		left[i] = i
	}
	lab.Ratio(t, "the pod farthest from its limit, from its first write on", nriRate, lab.Written, func() float64 {
		rates, least, most := map[int]float64{}, float64(nriRate), float64(nriRate)
		for some := range slices.Chunk(left, podsAtOnce) {
			maps.Copy(rates, n.rates(t, some))
		}
		begun += len(left)
		left = nil
		for i, rate := range rates {
			t.Logf("pod %d wrote %.3f of its limit", i, rate/nriRate)
			if rate < lab.Written.Low*nriRate || rate > lab.Written.High*nriRate {
				left = append(left, i)
			}
			least, most = min(least, rate), max(most, rate)
		}
		if most > lab.Written.High*nriRate || least >= lab.Written.Low*nriRate {
			return most
		}
		return least
	})
	s := n.status(t)
	if s.Starts-before.Starts != uint64(begun) || s.Limited-before.Limited != uint64(begun) || s.Late+s.Failed+s.Refused != 0 {
		t.Errorf("before %+v, now %+v", before, s)
	}
	t.Logf("weird answered within %.1f ms (p99)", s.P99Seconds*1000)
}

// rates starts pods, each of which asks for its limit in one of three ways, and returns how fast each
// has written. If they are too many beside those that were started before, it ends those.
func (n *nri) rates(t *testing.T, pods []int) map[int]float64 {
	t.Helper()
	weir, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	if len(n.writers)+len(pods) > podsAtOnce {
		for _, pod := range n.writers {
			pod.end()
		}
		n.writers = nil
	}
	results := t.TempDir()
	for _, i := range pods {
		annotations := []map[string]string{
			{"weir.io/write": fmt.Sprint(nriRate)},
			{"weir.io/on.data": fmt.Sprintf("path=/data write=%dk", nriRate/1000)},
			{"weir.io/write.main": fmt.Sprintf("%dM", nriRate/1_000_000)},
		}[i%3]
		job := load.Job{Path: load.Direct, File: fmt.Sprintf("/data/%s-%d", n.driver, i), Block: 32 << 10, Size: 4 << 20, For: 4 * time.Second}
		script := fmt.Sprintf("/weir %s %s > /results/%d.new 2>&1; /bin/busybox mv /results/%d.new /results/%d; exec /bin/busybox sleep 100000", load.Arg, strings.Join(job.Args(), " "), i, i, i)
		pod, err := n.begin(t, "default", annotations, map[string]string{"/data": n.disk.Dir, "/results": results, "/weir": weir}, "/bin/sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		n.writers = append(n.writers, pod)
		limited, other := pod.dir, pod.container
		if i%3 == 2 {
			limited, other = other, limited
		}
		if got := ruleIn(t, filepath.Join(limited, "io.max"), n.disk.Number); got != ruleOf(n.e, nriRate) {
			t.Errorf("pod %d: the rule of %s is %q", i, limited, got)
		}
		if got := ruleIn(t, filepath.Join(other, "io.max"), n.disk.Number); got != "" {
			t.Errorf("pod %d: %s has the rule %q", i, other, got)
		}
	}
	rates := map[int]float64{}
	for _, i := range pods {
		file := filepath.Join(results, fmt.Sprint(i))
		lab.Await(t, 60*time.Second, file, func() bool { _, err := os.Stat(file); return err == nil })
		rates[i] = resultIn(t, file).BytesPerSec()
	}
	return rates
}

// resultIn reads what a load has reported.
func resultIn(t *testing.T, file string) load.Result {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for one := range strings.Lines(string(text)) {
		var l struct{ Result *load.Result }
		if json.Unmarshal([]byte(one), &l) == nil && l.Result != nil {
			return *l.Result
		}
	}
	t.Fatalf("%s has no result:\n%s", file, text)
	return load.Result{}
}
