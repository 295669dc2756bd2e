package planned

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

const podUID = "8f14e45f-ceea-467f-a8d0-3f2a9c1b5d7e"

// newPods is a copy of a machine with a pod prod/web, whose container "main" has the id dbID, and
// the containerd that runs it.
func newPods(t *testing.T, annotations map[string]string) *world {
	t.Helper()
	return newPodsOf(t, "web", annotations)
}

// message is one of protobuf, with texts as its first fields.
func message(fields ...string) (m string) {
	for i, text := range fields {
		m += string(grpc.AppendString(nil, grpc.FieldNumber(i+1), text))
	}
	return m
}

// newPodsOf is newPods with another name for the pod.
func newPodsOf(t *testing.T, name string, annotations map[string]string) *world {
	t.Helper()
	socket := grpctest.Serve(t, func(method string, metadata http.Header, _ []byte) grpctest.Answer {
		var m []byte
		switch method[strings.LastIndex(method[:strings.LastIndex(method, "/")], ".")+1:] {
		case "RuntimeService/ListPodSandbox":
			pod := message(webID, message(name, podUID, "prod"))
			for key, value := range annotations {
				pod += string(grpc.AppendString(nil, 6, message(key, value)))
			}
			m = grpc.AppendString(nil, 1, pod)
		case "RuntimeService/PodSandboxStatus":
			m = grpc.AppendString(grpc.AppendString(nil, 1, message(webID)), 2, message("info", `{"pid":4900}`))
		case "RuntimeService/ListContainers":
			m = grpc.AppendString(nil, 1, message(dbID))
		case "Namespaces/List":
			m = grpc.AppendString(nil, 1, message("k8s.io"))
		case "Containers/ListStream", "Containers/Get":
			for _, label := range []string{message("io.kubernetes.container.name", "main"), message("io.kubernetes.pod.uid", podUID)} {
				m = grpc.AppendString(m, 2, label)
			}
			m = grpc.AppendString(nil, 1, message(dbID)+string(m))
		case "Tasks/Get":
			m = grpc.AppendString(nil, 1, string(grpc.AppendNumber(nil, 3, 4910)))
		default:
			t.Errorf("asked %s", method)
		}
		return grpctest.Answer{Message: m}
	})
	files := map[string]string{}
	for pid, id := range map[string]string{"4900": webID, "4910": dbID} {
		files["proc/"+pid+"/cgroup"] = "0::/kubepods/pod" + podUID + "/" + id + "\n"
		files["proc/"+pid+"/mountinfo"] = "430 400 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n440 430 254:16 / /data rw,relatime - xfs /dev/vdb rw\n"
		for _, g := range []string{"", "/" + id} {
			dir := "sys/fs/cgroup/kubepods/pod" + podUID + g + "/"
			files[dir+"cgroup.procs"], files[dir+"cgroup.controllers"], files[dir+"io.max"] = "", "io memory\n", ""
			if g != "" {
				files[dir+"cgroup.procs"] = pid + "\n"
			}
		}
	}
	w := &world{host: hosttest.Open(t, "v2", files, host.Options{Sockets: map[string]string{"pod": "unix://" + socket, "containerd": socket}})}
	w.Kernel = hosttest.Rehearse(t, w.host)
	return w
}

// inForce is what a group of the pod's has in io.max.
func (w *world) inForce(t *testing.T, group string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.host.Root, "sys/fs/cgroup/kubepods/pod"+podUID, group, "io.max"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(string(text), "=max", "=-"), "\n", "; "))
}

// Annotations lower what a plan allows, for a pod and for its containers, and count without a plan
// where a runtime is served. Once they and the plan are gone, so are the limits.
func TestAnnotations(t *testing.T) {
	annotations := map[string]string{"weir.io/write": "5M", "weir.io/read.main": "3M"}
	w := newPods(t, annotations)
	apply := func(text, want, pod, container string) {
		t.Helper()
		m := w.manager(t, text)
		m.Config.Annotated = true
		r, err := m.Apply(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := spell(r); got != want || w.inForce(t, "") != pod || w.inForce(t, dbID) != container {
			t.Errorf("%s: the pod has %q, the container %q; want %s, %q, %q", got, w.inForce(t, ""), w.inForce(t, dbID), want, pod, container)
		}
	}
	const c, p = "containerd:k8s.io/" + dbID, "pod:prod/web"
	both := "254:0 rbps=3000000 wbps=- riops=- wiops=-; 254:16 rbps=3000000 wbps=- riops=- wiops=-;"
	fives := "254:0 rbps=- wbps=5000000 riops=- wiops=-; 254:16 rbps=- wbps=5000000 riops=- wiops=-;"
	apply("", c+" none changed, "+p+" none changed", fives, both)
	apply("", c+" none in-force, "+p+" none in-force", fives, both)
	apply("plans: {a: {write: 9MB/s, read: 8MB/s}}\nassign: [{pod: {name: web}, plan: a}]", c+" none in-force, "+p+" a changed",
		"254:0 rbps=8000000 wbps=5000000 riops=- wiops=-; 254:16 rbps=8000000 wbps=5000000 riops=- wiops=-;", both)
	apply("plans: {a: {write: 2MB/s}}\nassign: [{pod: {name: web}, plan: a}]", c+" none in-force, "+p+" a changed", strings.ReplaceAll(fives, "5000000", "2000000"), both)
	delete(annotations, "weir.io/write")
	apply("", c+" none in-force, "+p+" none changed", "", both)
	annotations["weir.io/read.main"] = "x"
	r, err := w.manager(t, "allow-labels: [a]\nplans: {a: {write: 2MB/s}}").Diff(t.Context())
	if err != nil || len(r.Targets) != 2 || !strings.Contains(r.Targets[0].Choice.Refused, "annotation weir.io/read.main: x is no quantity") {
		t.Errorf("%+v, %v", r.Targets, err)
	}
}

// A pod's name can be as long as a file's. It has the plan all the same, and loses it.
func TestALongName(t *testing.T) {
	name := strings.Repeat("x", 253)
	w := newPodsOf(t, name, nil)
	const plan = "plans: {a: {write: 2MB/s}}\nassign: [{pod: {namespace: prod}, plan: a}]"
	for _, want := range []string{"changed", "in-force"} {
		if got := w.apply(t, plan); got != "pod:prod/"+name+" a "+want {
			t.Errorf("%s; want %s", got, want)
		}
	}
	if got := w.apply(t, "plans: {a: {write: 2MB/s}}"); got != "pod:prod/"+name+" none changed" || w.inForce(t, "") != "" {
		t.Errorf("%s: %s", got, w.inForce(t, ""))
	}
}

// Without a runtime that is served, and without a plan that can be for a pod, no pod is asked for.
func TestAnnotationsAreNotLookedFor(t *testing.T) {
	w := newPods(t, map[string]string{"weir.io/write": "5M"})
	if r, err := w.manager(t, "").Diff(t.Context()); err != nil || len(r.Targets) != 0 {
		t.Errorf("%+v, %v", r.Targets, err)
	}
}

func TestCheck(t *testing.T) {
	m := Manager{Config: &plans.Config{AllowLabels: []string{"ok"}, Default: plans.None}}
	for text, want := range map[string]string{
		"weir.io/plan=ok": "", "weir.io/plan.web=ok": "", "other/plan=x": "", "weir.io/on.a=read=1": "",
		"weir.io/plan=no":     "annotation weir.io/plan: allow-labels does not have the plan no; choose one that it has, or ask an administrator of the node for it",
		"weir.io/plan.web=no": "annotation weir.io/plan.web: allow-labels does not have the plan no; choose one that it has, or ask an administrator of the node for it",
		"weir.io/read=-1":     "annotation weir.io/read: -1 is negative",
	} {
		key, value, _ := strings.Cut(text, "=")
		if err := m.Check(map[string]string{key: value}); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestIsVolumeOf(t *testing.T) {
	const pods = "/var/lib/kubelet/pods/" + podUID
	for dir, want := range map[string]bool{
		pods + "/volumes/kubernetes.io~empty-dir/data":     true,
		pods + "/volumes/kubernetes.io~csi/data/mount":     true,
		"/k/pods/u/volumes/kubernetes.io~nfs/data/sub/dir": true,
		pods + "/volumes/kubernetes.io~empty-dir/data2":    false,
		pods + "/volumes/data":                             false,
		pods + "/plugins/kubernetes.io~empty-dir/data":     false,
		"/data": false, "": false, "pods/a/volumes": false,
	} {
		if isVolumeOf(dir, "", "data") != want {
			t.Errorf("%s: %v", dir, !want)
		}
	}
}

// A pod's own choice of a plan comes from its annotation, and a container's from its pod's.
func TestFactsOfPods(t *testing.T) {
	all := map[string]string{"weir.io/plan": "p", "weir.io/plan.main": "q", "weir.io/read": "1", "weir.io/write.main": "2", "weir.io/on.v": "read=3"}
	labels := map[string]string{"io.kubernetes.container.name": "main"}
	for _, c := range []struct {
		l    targets.Listed
		want string
	}{
		{targets.Listed{Kind: "pod", Annotations: all}, "p read 1 B/s 1"},
		{targets.Listed{Kind: "containerd", Labels: labels, Annotations: all}, "q write 2 B/s 0"},
		{targets.Listed{Kind: "containerd", Annotations: all}, "- no rate named 0"},
	} {
		f := factsOf(c.l)
		own := "-"
		if f.Own != nil {
			own = *f.Own
		}
		if got := fmt.Sprint(own, " ", f.Limit, " ", len(f.On)); got != c.want || f.Wrong != nil {
			t.Errorf("%s, want %s; %v", got, c.want, f.Wrong)
		}
	}
}
