package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// The containers' names, and where a Pod has its directories.
const (
	container = "main"
	side      = "side"
	Data      = "/data"  // a directory of the host
	Cache     = "/cache" // an emptyDir called "cache"
	Claimed   = "/claim" // the volume of its claim
	Root      = "/"      // of the container
)

// A Pod has one container, or two.
type Pod struct {
	Name        string
	QoS         string // as kubelet is to call it: "Guaranteed", "Burstable" or "BestEffort"
	Annotations map[string]string
	Host        string // the directory that is at Data
	Claim       string // the claim that is at Claimed; empty: none
	Writes      string // Data, Cache, Claimed or Root: where its program writes
	Command     string // of a shell, instead of the program that measures itself
	Two         bool   // another container runs the same; Beside is what it measures
	version     string // a part of the manifest, so that each is another one
}

// Beside stands for the pod's other container, where its measurements are meant.
func (p *Pod) Beside() *Pod {
	return &Pod{Name: p.Name + "-" + side, Writes: p.Writes, Command: p.Command}
}

// resources are what make kubelet choose a QoS class (kubernetes, pkg/apis/core/v1/helper/qos).
var resources = map[string]map[string]any{
	"Guaranteed": {"requests": amounts, "limits": amounts},
	"Burstable":  {"requests": amounts},
	"BestEffort": {},
}

var amounts = map[string]string{"cpu": "100m", "memory": "64Mi"}

// program is the shell's: it measures from its first write on, under the lowest number that is not taken.
func (p *Pod) program() string {
	if p.Command != "" {
		return p.Command
	}
	job := load.Job{Path: load.Direct, File: p.Writes + "/" + p.Name, Block: 32 << 10, Size: 4 << 20, For: 4 * time.Second}
	return fmt.Sprintf("n=0; while [ -e /results/%[1]s.$n ]; do n=$((n+1)); done; /weir %[2]s %[3]s >/results/%[1]s.$n.new 2>&1; "+
		"/bin/busybox mv /results/%[1]s.$n.new /results/%[1]s.$n; exec /bin/busybox sleep 100000", p.Name, load.Arg, strings.Join(job.Args(), " "))
}

// containers are the pod's. Each has all of its volumes.
func (n *Node) containers(p *Pod, mounts []map[string]any) []map[string]any {
	one := func(name string, p *Pod) map[string]any {
		return map[string]any{"name": name, "image": n.image, "imagePullPolicy": "Never", "command": []string{"/bin/sh", "-c", p.program()},
			"resources": resources[p.QoS], "volumeMounts": mounts}
	}
	all := []map[string]any{one(container, p)}
	if p.Two {
		all = append(all, one(side, p.Beside()))
	}
	return all
}

func (n *Node) manifest(p *Pod) ([]byte, error) {
	annotations := map[string]string{"lab.test/version": p.version}
	for key, value := range p.Annotations {
		annotations[key] = value
	}
	var mounts, volumes []map[string]any
	add := func(name, at string, volume map[string]any) {
		mounts = append(mounts, map[string]any{"name": name, "mountPath": at})
		volume["name"] = name
		volumes = append(volumes, volume)
	}
	add("data", Data, map[string]any{"hostPath": map[string]any{"path": p.Host, "type": "Directory"}})
	add("cache", Cache, map[string]any{"emptyDir": map[string]any{}})
	add("results", "/results", map[string]any{"hostPath": map[string]any{"path": results, "type": "Directory"}})
	add("weir", "/weir", map[string]any{"hostPath": map[string]any{"path": n.weir, "type": "File"}})
	if p.Claim != "" {
		add("claimed", Claimed, map[string]any{"persistentVolumeClaim": map[string]any{"claimName": p.Claim}})
	}
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": p.Name, "namespace": "default", "annotations": annotations},
		"spec": map[string]any{"hostNetwork": true, "terminationGracePeriodSeconds": 1, "volumes": volumes,
			"containers": n.containers(p, mounts)}})
}

// PutLocal gives the API server a PersistentVolume that is a directory of this node, and a claim of the same name
// that has it.
func (n *Node) PutLocal(t testing.TB, name, dir string) {
	t.Helper()
	const size = "1Gi" // nobody looks whether there is so much
	spec := func(more map[string]any) map[string]any {
		more["accessModes"], more["storageClassName"], more["volumeMode"] = []string{"ReadWriteOnce"}, "", "Filesystem"
		return more
	}
	here := map[string]any{"required": map[string]any{"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{
		map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": []string{nodeName}}}}}}}
	for _, object := range []map[string]any{
		{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": name},
			"spec": spec(map[string]any{"capacity": map[string]any{"storage": size}, "local": map[string]any{"path": dir}, "nodeAffinity": here})},
		{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"name": name, "namespace": "default"},
			"spec": spec(map[string]any{"volumeName": name, "resources": map[string]any{"requests": map[string]any{"storage": size}}})},
	} {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		n.create(t, text)
	}
}

// create gives the API server a manifest.
func (n *Node) create(t testing.TB, manifest []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.json")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	Kubectl(t, "create", "-f", file)
}

// Put gives kubelet the pod, or what has changed in it: it ends the pod then, and starts another one of the
// same name.
func (n *Node) Put(t testing.TB, p *Pod) {
	t.Helper()
	p.version = strconv.FormatInt(time.Now().UnixNano(), 10)
	text, err := n.manifest(p)
	if err != nil {
		t.Fatal(err)
	}
	if n.api {
		n.create(t, text)
		return
	}
	file := filepath.Join(manifests, p.Name+".json")
	temp := filepath.Join(filepath.Dir(manifests), p.Name+".json.new")
	if err := errors.Join(os.WriteFile(temp, text, 0o600), os.Rename(temp, file)); err != nil {
		t.Fatal(err)
	}
}

// Remove takes the pod's manifest away.
func (n *Node) Remove(t testing.TB, p *Pod) {
	t.Helper()
	if n.api {
		Kubectl(t, "delete", "pod", p.Name, "--ignore-not-found", "--wait=false")
		return
	}
	if err := os.Remove(filepath.Join(manifests, p.Name+".json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Starts is how often the pod's program has been started and has measured itself.
func (n *Node) Starts(p *Pod) (starts int) {
	for {
		if _, err := os.Stat(resultOf(p, starts)); err != nil {
			return starts
		}
		starts++
	}
}

func resultOf(p *Pod, start int) string {
	return filepath.Join(results, fmt.Sprintf("%s.%d", p.Name, start))
}

// Rate is what the program has measured after its start with this number, in bytes per second, once it has.
func (n *Node) Rate(t testing.TB, p *Pod, start int) float64 {
	t.Helper()
	return n.Result(t, p, start).BytesPerSec()
}

// Result is what Rate is of.
func (n *Node) Result(t testing.TB, p *Pod, start int) load.Result {
	t.Helper()
	file := resultOf(p, start)
	lab.Await(t, time.Minute, file, func() bool { _, err := os.Stat(file); return err == nil })
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l struct{ Result *load.Result }
		if json.Unmarshal([]byte(line), &l) == nil && l.Result != nil {
			return *l.Result
		}
	}
	t.Fatalf("%s has no result:\n%s", file, text)
	return load.Result{}
}
