package pod

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/targets"
)

// A known pod is one that the runtime of a test has.
type known struct {
	sandbox
	pid        int
	containers []string
}

// runtimeOf answers the CRI as containerd does, with a JSON of its own in the status.
func runtimeOf(t *testing.T, pods ...known) (socket string) {
	t.Helper()
	message := func(fields ...string) string {
		var m []byte
		for i, f := range fields {
			m = grpc.AppendString(m, grpc.FieldNumber(i+1), f)
		}
		return string(m)
	}
	maps := func(s sandbox) (m string) {
		for i, entries := range []map[string]string{s.labels, s.annotations} {
			for key, value := range entries {
				m += string(grpc.AppendString(nil, grpc.FieldNumber(5+i), message(key, value)))
			}
		}
		return m
	}
	return grpctest.Serve(t, func(method string, _ http.Header, request []byte) grpctest.Answer {
		var answer []byte
		for _, p := range pods {
			asked := strings.Contains(string(request), p.id)
			switch {
			case method == service+"ListPodSandbox":
				answer = grpc.AppendString(answer, 1, message(p.id, message(p.name, p.uid, p.namespace))+maps(p.sandbox))
			case method == service+"ListContainers" && (asked || string(request) == onlyRunning):
				for _, id := range p.containers {
					if asked || id != "ended" {
						answer = grpc.AppendString(answer, 1, message(id, p.id, message("name-of-"+id, "\x01")))
					}
				}
			case method == service+"PodSandboxStatus" && asked:
				answer = grpc.AppendString(grpc.AppendString(nil, 1, message(p.id)), 2, message("other", "{"))
				if p.pid != 0 {
					answer = grpc.AppendString(answer, 2, message("info", fmt.Sprintf(`{"pid":%d,"image":"pause"}`, p.pid)))
				}
			}
		}
		return grpctest.Answer{Message: answer}
	})
}

// host has groups with processes, in /proc and in the hierarchy.
func host(t *testing.T, version cgroupfs.Version, groups map[string]string) Kind {
	t.Helper()
	files := map[string]string{}
	for pid, group := range groups {
		files["proc/"+pid+"/cgroup"] = "0::" + group + "\n1:blkio:" + group + "\n"
		files[cgrouptest.V2Dir+group+"/cgroup.procs"] = pid + "\n"
		for above := group; above != ""; above = above[:strings.LastIndex(above, "/")] {
			if file := cgrouptest.V2Dir + above + "/cgroup.procs"; files[file] == "" {
				files[file] = ""
			}
		}
	}
	h := cgrouptest.New(t, version, files)
	return Kind{FS: h.FS, Hierarchy: h.IO, SystemdRuns: true, Root: h.Root}
}

// onlyRunning is a ListContainersRequest with a ContainerFilter whose ContainerStateValue is running: field 1,
// field 2, field 1 with 1 (k8s.io/cri-api, pkg/apis/runtime/v1/api.proto).
const onlyRunning = "\x0a\x04\x12\x02\x08\x01"

const slice = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podu1.slice"

func TestResolve(t *testing.T) {
	k := host(t, cgroupfs.V2, map[string]string{
		"11": slice + "/cri-containerd-s1.scope", "12": slice + "/cri-containerd-c1.scope", "13": slice + "/cri-containerd-c2.scope/init",
		"21": "/kubepods/podu2/s2",
		"31": "/k8s.io/s3", "32": "/k8s.io/elses",
		"41": "/pods/p4/s4", "42": "/pods/p4",
		"61": "/system.slice/containerd.service",
		"91": "/s9",
	})
	k.Endpoint = "unix://" + runtimeOf(t,
		known{sandbox{id: "s1", namespace: "default", name: "web", uid: "u1", labels: map[string]string{"app": "x"}, annotations: map[string]string{"weir.io/plan": "small"}}, 11, []string{"c1", "c2", "ended"}},
		known{sandbox{id: "s2", namespace: "default", name: "db", uid: "u2"}, 21, nil},
		known{sandbox{id: "s3", namespace: "default", name: "shared", uid: "u3"}, 31, nil},
		known{sandbox{id: "s4", namespace: "default", name: "inside", uid: "u4"}, 41, nil},
		known{sandbox{id: "s5", namespace: "default", name: "ended", uid: "u5"}, 55, nil},
		known{sandbox{id: "s6", namespace: "default", name: "vm", uid: "u6"}, 61, nil},
		known{sandbox{id: "s7", namespace: "default", name: "silent", uid: "u7"}, 0, nil},
		known{sandbox{id: "s8", namespace: "twice", name: "web", uid: "u8"}, 11, nil}, known{sandbox{id: "s8b", namespace: "twice", name: "web", uid: "u8b"}, 11, nil},
		known{sandbox{id: "s9", namespace: "default", name: "root", uid: "u9"}, 91, nil},
		known{sandbox{id: "s11", namespace: "default", name: "dashed", uid: "u-11"}, 0, nil},
		known{sandbox{id: "s10", namespace: "default", name: "a\x1b[2J", uid: "u10"}, 11, nil},
	)
	for name, want := range map[string]struct {
		group  string
		firsts []int
		owner  targets.Owner
	}{
		"default/web": {slice, []int{12, 13, 11}, targets.Owner{Kind: "kubernetes", Name: "default/web", Unit: "kubepods-besteffort-podu1.slice"}},
		"u1":          {slice, []int{12, 13, 11}, targets.Owner{Kind: "kubernetes", Name: "default/web", Unit: "kubepods-besteffort-podu1.slice"}},
		"default/db":  {"/kubepods/podu2", []int{21}, targets.Owner{Kind: "kubernetes", Name: "default/db"}},
	} {
		got, err := k.Resolve(t.Context(), name)
		slices.Sort(want.firsts)
		slices.Sort(got.Firsts)
		if err != nil || got.Group.Path() != want.group || !slices.Equal(got.Firsts, want.firsts) || got.Owner != want.owner || got.String() != "pod:"+name {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"default/shared": "with others (/k8s.io/elses): the pod has no cgroup of its own", "default/inside": "with others (process 42)",
		"default/ended": "its first process, 55, is not on this host", "default/vm": "is not named after the pod", "default/root": "is not below the pod's group",
		"default/silent": "the runtime does not say which process holds the pod", "twice/web": "has 2 pods of this name; name one by its UID: pod:u8, pod:u8b",
		"default/none": "no such pod runs on this host", "web": "no such pod runs on this host", "u10": "no such pod runs on this host",
		"": "name a pod by its namespace", "default/": "name a pod by its namespace", "/web": "name a pod by its namespace", "../web": "name a pod by its namespace",
		"a/b/c": "name a pod by its namespace", "a b": "name a pod by its namespace", strings.Repeat("x", 254): "name a pod by its namespace", "köln/web": "name a pod by its namespace",
	} {
		if got, err := k.Resolve(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q in it", name, got, err, want)
		}
	}
	name := k.Namer(t.Context())
	for group, want := range map[string]string{slice: "pod:default/web", "/kubepods/podu2": "pod:default/db", "/kubepods/podu1.slice/x": "", "/": "", "/podu": "",
		"/kubepods.slice/kubepods-podu_11.slice": "pod:default/dashed"} {
		if got := name(group); got != want {
			t.Errorf("the group %s is %q, want %q", group, got, want)
		}
	}
	in := k.Within(t.Context())
	web := func(name string) targets.InPod {
		return targets.InPod{Namespace: "default", Pod: "web", Container: name}
	}
	for group, want := range map[string]targets.InPod{
		slice + "/cri-containerd-c1.scope": web("name-of-c1"), slice + "/crio-c2.scope": web("name-of-c2"), "/kubepods/podu1/c1": web("name-of-c1"),
		slice + "/crio-conmon-c2.scope":    {}, // the monitor of c2
		slice + "/cri-containerd-s1.scope": {}, slice + "/cri-containerd-ended.scope": {}, slice: {}, "/": {},
		slice + "/cri-containerd-c1.scope/below": {}, "/kubepods/podu2/c1": {}, "/user.slice/c1": {}, // a user can make groups of any name
	} {
		if got := in(group); got != want {
			t.Errorf("the group %s is %+v, want %+v", group, got, want)
		}
	}
	list, err := k.List(t.Context())
	if err != nil || len(list) != 11 || list[0].String() != "pod:default/web" || list[0].Namespace != "default" || !slices.Equal(list[0].Names, []string{"web"}) ||
		list[0].Labels["app"] != "x" || list[0].Annotations["weir.io/plan"] != "small" || len(list[1].Labels)+len(list[1].Annotations) != 0 {
		t.Errorf("%d pods, %+v, %v", len(list), list[0], err)
	}
	if got := k.Live(t.Context(), "default/w"); !slices.Equal(got, []string{"default/web"}) {
		t.Errorf("live: %q", got)
	}
}

// A host with Docker and k3s has two runtimes: each names its pods, and one can have ended and
// left its socket.
func TestSeveralRuntimes(t *testing.T) {
	k := host(t, cgroupfs.V2, map[string]string{"11": "/kubepods/pod1/c1"})
	link := func(place, socket string) {
		file := filepath.Join(k.Root, place)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.Symlink(socket, file)); err != nil {
			t.Fatal(err)
		}
	}
	link(usualSockets[0], runtimeOf(t))
	ended := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: ended, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	link(usualSockets[3], runtimeOf(t, known{sandbox{id: "s1", namespace: "default", name: "web", uid: "1"}, 11, []string{"c1"}}))
	var missing *targets.NotFound
	if _, err := k.Resolve(t.Context(), "default/none"); !errors.As(err, &missing) {
		t.Errorf("none: %v", err)
	}
	link(usualSockets[1], ended)
	var silent *targets.NoKindError // its pods are not known
	if _, err := k.Resolve(t.Context(), "default/none"); !errors.As(err, &silent) {
		t.Errorf("none of those that answer: %v", err)
	}
	if got := k.Namer(t.Context())("/kubepods/pod1"); got != "pod:default/web" {
		t.Errorf("the group of the pod is %q", got)
	}
	if got := k.Within(t.Context())("/kubepods/pod1/c1"); got.Pod != "web" {
		t.Errorf("the group of the container is %+v", got)
	}
	if got := k.Live(t.Context(), ""); !slices.Equal(got, []string{"default/web"}) {
		t.Errorf("live: %q", got)
	}
}

// On v1 a pod has no group that binds it, and its containers are named.
func TestV1(t *testing.T) {
	k := host(t, cgroupfs.V1, map[string]string{"11": "/kubepods/podu1/s1"})
	k.Endpoint = runtimeOf(t, known{sandbox{id: "s1", namespace: "default", name: "web", uid: "u1"}, 11, []string{"c1", "c2"}})
	_, err := k.Resolve(t.Context(), "default/web")
	if !fault.IsUnsupported(err) || !strings.Contains(err.Error(), "containerd:k8s.io/c1, containerd:k8s.io/c2") {
		t.Errorf("%v", err)
	}
}

// The runtime is where crictl would look for it.
func TestSocket(t *testing.T) {
	for _, c := range []struct {
		endpoint string
		files    map[string]string
		want     string
	}{
		{"unix:///run/a.sock", map[string]string{"etc/crictl.yaml": "runtime-endpoint: unix:///run/b.sock\n"}, "/run/a.sock"},
		{"", map[string]string{"etc/crictl.yaml": "timeout: 2\nruntime-endpoint: \"unix:///run/b.sock\"\n"}, "/run/b.sock"},
		{"", map[string]string{"etc/crictl.yaml": "image-endpoint: ''\nruntime-endpoint: /run/b.sock # ours\n"}, "/run/b.sock"},
		{"", map[string]string{"etc/crictl.yaml": "timeout: 2\n", "run/crio/crio.sock": ""}, "ROOT/run/crio/crio.sock"},
		{"", map[string]string{"run/crio/crio.sock": "", "run/containerd/containerd.sock": ""}, "ROOT/run/containerd/containerd.sock"},
		{"", nil, "ROOT/run/containerd/containerd.sock"},
	} {
		h := cgrouptest.New(t, cgroupfs.V2, c.files)
		got, err := Kind{Root: h.Root, Endpoint: c.endpoint}.sockets()
		if err != nil || strings.Replace(got[0], h.Root, "ROOT", 1) != c.want {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
	for _, c := range []struct{ endpoint, config, want string }{
		{"tcp://10.0.0.1:1", "", "CONTAINER_RUNTIME_ENDPOINT has"},
		{"", "runtime-endpoint: npipe:////./pipe/x\n", "/etc/crictl.yaml has"},
	} {
		h := cgrouptest.New(t, cgroupfs.V2, map[string]string{"etc/crictl.yaml": c.config})
		if _, err := (Kind{Root: h.Root, Endpoint: c.endpoint}).sockets(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A socket without the CRI, or without anybody, is a host without pods.
func TestNoRuntime(t *testing.T) {
	k := host(t, cgroupfs.V2, nil)
	var none *targets.NoKindError
	if _, err := k.Resolve(t.Context(), "default/web"); !errors.As(err, &none) {
		t.Errorf("without a runtime: %v", err)
	}
	k.Endpoint = grpctest.Serve(t, func(string, http.Header, []byte) grpctest.Answer {
		return grpctest.Answer{Code: grpc.Unimplemented, Text: "unknown service runtime.v1.RuntimeService"}
	})
	if _, err := k.Resolve(t.Context(), "default/web"); !errors.As(err, &none) || !strings.Contains(err.Error(), "disabled_plugins") {
		t.Errorf("without the CRI: %v", err)
	}
	if got := k.Live(t.Context(), ""); got != nil {
		t.Errorf("live: %q", got)
	}
}

// cri-dockerd tells no process: the group is found by the pod's UID, in each spelling.
func TestWithoutAProcess(t *testing.T) {
	const uid = "0b6a2f7e-1c54-4f7e-9d0b-3a5c8e7f1d22"
	under := strings.ReplaceAll(uid, "-", "_")
	for _, group := range []string{
		"/kubepods/besteffort/pod" + uid, "/kubepods/pod" + uid, "/kubelet/kubepods/pod" + uid,
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under + ".slice",
		"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" + under + ".slice",
	} {
		k := host(t, cgroupfs.V2, map[string]string{"11": group + "/docker-s1.scope", "12": group + "/docker-c1.scope", "21": "/kubepods/podother/s9"})
		k.Endpoint = "unix://" + runtimeOf(t, known{sandbox{id: "s1", namespace: "default", name: "web", uid: uid}, 0, []string{"c1"}})
		got, err := k.Resolve(t.Context(), "default/web")
		slices.Sort(got.Firsts)
		if err != nil || got.Group.Path() != group || !slices.Equal(got.Firsts, []int{11, 12}) {
			t.Errorf("%s: %s, %v, %v", group, got.Group.Path(), got.Firsts, err)
		}
	}
}
