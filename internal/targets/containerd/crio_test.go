package containerd

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/cri"
	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/internal/targets"
)

// Whole ids, as CRI-O makes them.
var (
	webID, newID, oldID = strings.Repeat("1a", 32), strings.Repeat("2b", 32), strings.Repeat("3c", 32)
)

// crio answers as CRI-O does: the CRI alone. A container that has ended has the number of its process still.
func crio(t *testing.T, speaks bool) (socket string) {
	t.Helper()
	return grpctest.Serve(t, func(method string, _ http.Header, request []byte) grpctest.Answer {
		var m []byte
		if !speaks || !strings.HasPrefix(method, cri.Service) {
			return grpctest.Answer{Code: grpc.Unimplemented, Text: "unknown service " + method}
		}
		for _, c := range []struct {
			id         string
			state, pid uint64
		}{{webID, 1, 11}, {newID, 0, 12}, {oldID, exited, 13}} {
			its := strings.Contains(string(request), c.id)
			switch method[len(cri.Service):] {
			case "ListContainers":
				if !its && len(request) > 2 { // it has a filter
					continue
				}
				label := grpc.AppendString(grpc.AppendString(nil, 1, "io.kubernetes.container.name"), 2, "main")
				one := grpc.AppendNumber(grpc.AppendString(grpc.AppendString(nil, 1, c.id), 4, "image"), listedState, c.state)
				m = grpc.AppendString(m, 1, string(grpc.AppendString(one, listedLabels, string(label))))
			case "ContainerStatus":
				if !its {
					continue
				}
				info := grpc.AppendString(grpc.AppendString(nil, 1, "info"), 2, fmt.Sprintf(`{"sandboxID":"s","pid":%d,"runtimeSpec":{}}`, c.pid))
				m = grpc.AppendString(nil, 1, string(grpc.AppendNumber(grpc.AppendString(nil, 1, c.id), statusState, c.state)))
				return grpctest.Answer{Message: grpc.AppendString(m, 2, string(info))}
			}
		}
		if strings.HasSuffix(method, "ContainerStatus") {
			return grpctest.Answer{Code: grpc.NotFound, Text: "could not find container"}
		}
		return grpctest.Answer{Message: m}
	})
}

// CRI-O's containers are found by the names that those of pods have in containerd.
func TestCRIO(t *testing.T) {
	const pod = "/kubepods.slice/kubepods-podu1.slice"
	web := pod + "/crio-" + webID + ".scope"
	k := host(t, map[string]string{"11": web + "/container", "12": "/kubepods/podu2/crio-" + newID, "13": pod + "/crio-" + oldID + ".scope"})
	link(t, k.Root, "/run/crio/crio.sock", crio(t, true))
	for name, want := range map[string]string{webID: web, webID[:12]: web, newID: "/kubepods/podu2/crio-" + newID} {
		got, err := k.Resolve(t.Context(), "k8s.io/"+name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Group.Path() != want || got.Owner.Kind != "containerd" || len(got.Firsts) != 1 || got.Lasting != "containerd:k8s.io/"+targets.CalledAfter(want) {
			t.Errorf("%s: %s, %+v, %v", name, got.Group.Path(), got, err)
		}
	}
	for _, name := range []string{"k8s.io/" + oldID, "k8s.io/4d", "default/" + webID} {
		var missing *targets.NotFound
		if got, err := k.Resolve(t.Context(), name); !errors.As(err, &missing) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, c := range []struct {
		ids  []string
		want []string
	}{{nil, []string{webID, newID}}, {[]string{newID}, []string{newID}}, {[]string{newID, webID}, []string{webID, newID}}, {[]string{oldID}, nil}} {
		all, err := k.List(t.Context(), c.ids...)
		var ids []string
		for _, one := range all {
			if ids = append(ids, one.ID); one.String() != "containerd:k8s.io/"+one.ID || one.Labels["io.kubernetes.container.name"] != "main" {
				t.Errorf("%+v", one)
			}
		}
		if err != nil || !slices.Equal(ids, c.want) {
			t.Errorf("%q: %q, %v", c.ids, ids, err)
		}
	}
	if got := k.Live(t.Context(), "k8s.io/1"); !slices.Equal(got, []string{"k8s.io/" + webID}) {
		t.Errorf("live: %q", got)
	}
	name := k.Namer(t.Context())
	for group, want := range map[string]string{web: "containerd:k8s.io/" + webID, pod + "/crio-conmon-" + webID + ".scope": ""} {
		if got := name(group); got != want {
			t.Errorf("the group %s is %q, want %q", group, got, want)
		}
	}
	// One that ends between both questions has no process.
	if pid, err := (client{k.sockets()[0], criNamespace}).pid(t.Context(), oldID); pid != 0 || err != nil {
		t.Errorf("%d, %v", pid, err)
	}
	if pid, err := (client{k.sockets()[0], criNamespace}).pid(t.Context(), "none"); pid != 0 || err != nil {
		t.Errorf("%d, %v", pid, err)
	}
}

// What speaks neither containerd's API nor the CRI has no containers, and is no error of the host.
func TestNeither(t *testing.T) {
	k := Kind{Address: crio(t, false)}
	var none *targets.NoKindError
	if all, err := k.List(t.Context()); !errors.As(err, &none) || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := k.Resolve(t.Context(), "k8s.io/"+webID); !errors.As(err, &none) || !strings.Contains(err.Error(), "speaks neither containerd's API nor CRI version 1") {
		t.Error(err)
	}
}
