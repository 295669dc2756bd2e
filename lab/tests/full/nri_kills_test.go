package full

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// weird is killed in each phase of a pod's start: while what holds the pod is made, its container, and its program is let
// go. The pod starts all the same, and soon, and has its limit once weird is back.
func TestNRIKills(t *testing.T) {
	e := needNRI(t, lab.Whole, lab.Containerd, lab.Systemd, lab.V2, lab.FS("ext4"))
	n := newNRI(t, e, "cgroupfs")
	begin := func() (nriPod, error) {
		return n.begin(t, "default", map[string]string{"weir.io/write": fmt.Sprint(nriRate)}, map[string]string{"/data": n.disk.Dir}, "/bin/sleep", "100000")
	}
	began := time.Now()
	if _, err := begin(); err != nil {
		t.Fatal(err)
	}
	usual := time.Since(began)
	const kills = 24
	var longest time.Duration
	limited := 0 // when weird was killed after its answer
	for i := range kills {
		began := time.Now()
		weird, killed := n.weird, make(chan error, 1)
		time.AfterFunc(usual*time.Duration(i)/(kills-4), func() { killed <- weird.Process.Kill() })
		pod, err := begin()
		longest = max(longest, time.Since(began))
		if err != nil {
			t.Fatalf("weird was killed %d of %d through a start: %v", i, kills-4, err)
		}
		if err := <-killed; err != nil {
			t.Fatal(err)
		}
		_ = weird.Wait()
		rule := func() string { return ruleIn(t, filepath.Join(pod.dir, "io.max"), n.disk.Number) }
		if rule() != "" {
			limited++
		}
		n.serve(t)
		lab.Await(t, time.Second, "the limit, after weird's return", func() bool { return rule() == ruleOf(n.e, nriRate) })
		pod.end()
	}
	t.Logf("a pod starts in %v, and in %v at most of %d where weird is killed; %d had their limit before its return", usual, longest, kills, limited)
	if limited == 0 || limited == kills {
		t.Errorf("weird was not killed in each phase")
	}
}
