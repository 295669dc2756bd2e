package nri

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/containerd/nri/pkg/api"

	"github.com/weir-io/weir/internal/agent/source"
	"github.com/weir-io/weir/internal/base/haste"
	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
)

// A node is a world with many pods of one container, whose runtime lists them.
type node struct {
	*world
	pods   []*api.PodSandbox
	of     []*api.Container
	looked atomic.Int64
}

// newNode makes a node. The annotation of each pod is a limit.
func newNode(t testing.TB, pods int) *node {
	n := &node{}
	files := map[string]string{}
	for i := range pods {
		uid := fmt.Sprintf("8f14e45f-ceea-467f-a8d0-%012x", i)
		id, pause := fmt.Sprintf("3f%062x", i), fmt.Sprintf("5e%062x", i)
		pod := "/kubepods/burstable/pod" + uid
		n.pods = append(n.pods, &api.PodSandbox{Id: pause, Name: fmt.Sprint("web-", i), Uid: uid, Namespace: "prod", Linux: &api.LinuxPodSandbox{}})
		n.of = append(n.of, &api.Container{Id: id, PodSandboxId: pause, Name: "web", Linux: &api.LinuxContainer{CgroupsPath: pod + "/" + id},
			Labels: map[string]string{"io.kubernetes.container.name": "web", "io.kubernetes.pod.uid": uid}})
		files["sys/fs/cgroup"+pod+"/cgroup.procs"], files["sys/fs/cgroup"+pod+"/io.max"] = "", ""
		for j, name := range []string{pause, id} {
			pid, dir := fmt.Sprint(5000+2*i+j), "sys/fs/cgroup"+pod+"/"+name+"/"
			files[dir+"cgroup.procs"], files[dir+"io.max"] = pid+"\n", ""
			files["proc/"+pid+"/cgroup"] = "0::" + pod + "/" + name + "\n"
			files["proc/"+pid+"/mountinfo"] = "430 400 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n440 430 254:16 / /db rw - xfs /dev/vdb rw\n"
		}
	}
	n.world = newWorldWith(t, "v2", config, files)
	return n
}

// start has the plugin answer for a pod, whose limits are others each time.
func (n *node) start(ctx context.Context, pod, time int) error {
	p := &api.PodSandbox{Id: n.pods[pod].Id, Name: n.pods[pod].Name, Uid: n.pods[pod].Uid, Namespace: "prod", Linux: &api.LinuxPodSandbox{},
		Annotations: map[string]string{"weir.io/write": fmt.Sprint(1_000_000 + time)}}
	return n.plugin.limit(ctx, p, n.of[pod])
}

// looks is at how many pods a source has looked so far.
func (n *node) looks() int { return int(n.looked.Load()) }

// source is the agent's of the node's pods, which the runtime lists.
func (n *node) source(t testing.TB, gate *haste.Gate) *source.Kind {
	message := func(fields ...string) (m string) {
		for i, text := range fields {
			if text != "" {
				m += string(grpc.AppendString(nil, grpc.FieldNumber(i+1), text))
			}
		}
		return m
	}
	var list []byte
	for _, p := range n.pods {
		list = grpc.AppendString(list, 1, message(p.GetId(), message(p.GetName(), p.GetUid(), "prod")))
	}
	return n.kind(t, "pod", config, gate, grpctest.Serve(t, func(method string, _ http.Header, request []byte) grpctest.Answer {
		m := list
		if !strings.HasSuffix(method, "/ListPodSandbox") {
			m = nil
			for i, p := range n.pods {
				switch {
				case !strings.Contains(string(request), p.GetId()):
				case strings.HasSuffix(method, "/PodSandboxStatus"):
					n.looked.Add(1)
					m = grpc.AppendString(grpc.AppendString(nil, 1, message(p.GetId())), 2, message("info", fmt.Sprintf(`{"pid":%d}`, 5000+2*i)))
				case strings.HasSuffix(method, "/ListContainers"):
					m = grpc.AppendString(nil, 1, message(n.of[i].GetId()))
				}
			}
		}
		return grpctest.Answer{Message: m}
	}))
}

// hanging is a source whose daemon takes connections and says nothing.
func (n *node) hanging(t testing.TB, gate *haste.Gate) *source.Kind {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "docker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return n.kind(t, "docker", "plans: {small: {write: 1M}}\nassign: [{docker: '*', plan: small}]\n", gate, l.Addr().String())
}

func (n *node) kind(t testing.TB, name, config string, gate *haste.Gate, socket string) *source.Kind {
	t.Helper()
	o := source.Options{Plans: source.NewPlans(read(t, config)), Ended: func(string, string) {}, Gate: gate, Open: func() (*host.Host, error) {
		h, err := host.Open(host.Options{Root: n.root, Sockets: map[string]string{name: "unix://" + socket}})
		if err == nil {
			_, err = hosttest.StandIn(h)
		}
		return h, err
	}}
	for _, k := range source.All(o) {
		if k.Kind() == name {
			t.Cleanup(func() {
				if err := k.Close(); err != nil {
					t.Error(err)
				}
			})
			return k
		}
	}
	t.Fatalf("there is no kind %s", name)
	return nil
}
