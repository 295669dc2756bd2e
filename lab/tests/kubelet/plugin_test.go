package kubelet_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/contrib"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/node"
)

// plugin asks weir about a pod that writes, by kubectl: weir answers in its own pod on the pod's node.
func (c *cluster) plugin(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl-weir"), []byte(contrib.KubectlWeir), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	p := &node.Pod{Name: "busy", QoS: "BestEffort", Host: c.disk.Dir, Writes: node.Data, Annotations: map[string]string{"weir.io/write": fmt.Sprint(rate)},
		Command: "while :; do /bin/busybox dd if=/dev/zero of=/data/busy bs=65536 count=64 conv=notrunc,fsync 2>/dev/null; done"}
	c.Put(t, p)
	defer c.end(t, p)
	group := c.Group(c.Running(t, p))
	lab.Await(t, 20*time.Second, "the pod's rule", func() bool { return ruleIn(t, group, c.disk.Number) == ruleOf(rate) })
	for _, verb := range [][]string{{"show"}, {"why"}, {"status"}, {"top", "--once"}, {"prove"}} {
		of := p.Name
		if verb[0] == "prove" {
			of = c.web.Name // which writes nothing any more: beside the other's writes a load gets too little
		}
		args := append([]string{"weir", verb[0], "-n", "default", of}, verb[1:]...)
		began := time.Now()
		text := node.Kubectl(t, append(args, "--json")...)
		t.Logf("%s took %.1f s, and says: %s", strings.Join(verb, " "), time.Since(began).Seconds(), text)
		if !json.Valid([]byte(text)) || !strings.Contains(text, of) {
			t.Errorf("kubectl %s --json says %s", strings.Join(args, " "), text)
		}
	}
	out, err := exec.Command("kubectl", "weir", "trace", "-n", "default", p.Name, "--for", "3s", "--json").CombinedOutput()
	_, noTypes := os.Stat("/sys/kernel/btf/vmlinux") // user-mode Linux has no BPF
	if why := strings.Contains(string(out), "type information"); (err == nil) != (noTypes == nil) || why != (noTypes != nil) {
		t.Errorf("kubectl weir trace: %v\n%s", err, out)
	}
}
