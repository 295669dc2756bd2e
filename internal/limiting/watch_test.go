package limiting

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// The watcher says of each group what Show does.
func TestWatch(t *testing.T) {
	files := map[string]string{"sys/fs/cgroup/alone/io.max": "8:0 rbps=1000 wbps=max riops=max wiops=max\n", "sys/fs/cgroup/batch/memory.stat": "file_dirty 4096\n"}
	m := manager(t, "v2", files, host.Options{})
	w, err := m.Watch(0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s, err := w.Sample(t.Context())
	if err != nil || s.Unread != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	shown, err := m.ShowAll(t.Context(), 0)
	if err != nil || len(shown.Groups) != 3 {
		t.Fatalf("%+v, %v", shown, err)
	}
	for _, g := range s.Groups {
		t.Logf("%s %s", g.Path, g.Target)
	}
	for _, want := range shown.Groups {
		found := false
		for _, g := range s.Groups {
			if g.Path != want.Path {
				continue
			}
			found = true
			if g.Target != want.Target || g.Owner != want.Owner {
				t.Errorf("%s: %s of %v, want %s of %v", g.Path, g.Target, g.Owner, want.Target, want.Owner)
			}
			for _, d := range want.Devices {
				if !sameDevice(g.Devices, d) {
					t.Errorf("%s: %+v, want %+v", g.Path, g.Devices, d)
				}
			}
		}
		if !found {
			t.Errorf("%s is not watched", want.Path)
		}
	}
	batch := s.Groups[1]
	by, all := batch.Devices[0].Holders(limit.WBPS)
	if batch.Path != "/batch" || batch.Devices[0].Total.WrittenBytes != 40000000 || batch.Memory == nil || batch.Memory.Dirty != 4096 {
		t.Errorf("%+v", batch)
	}
	if len(by) == 0 || by[0] != place.Throttle {
		t.Errorf("held by %v, all %v", by, all)
	}
}

func sameDevice(all []watch.Device, d Device) bool {
	return slices.ContainsFunc(all, func(o watch.Device) bool {
		return o.Number == d.Number && o.Node == d.Node && o.Limit == d.Limit && (o.Expected == nil) == (d.Expected == nil) &&
			(o.Expected == nil || reflect.DeepEqual(o.Expected.Cells(), d.Expected.Cells()))
	})
}

// The watcher knows a pod's containers by the names that the container runtime has for them, and of no
// runtime none.
func TestWatchContainers(t *testing.T) {
	const pod, uid = "kubepods/pod8f14e45f", "8f14e45f"
	message := func(fields ...string) (m string) {
		for i, text := range fields {
			m += string(grpc.AppendString(nil, grpc.FieldNumber(i+1), text))
		}
		return m
	}
	socket := grpctest.Serve(t, func(method string, _ http.Header, _ []byte) grpctest.Answer {
		switch method[strings.LastIndex(method, "/")+1:] {
		case "ListPodSandbox":
			return grpctest.Answer{Message: grpc.AppendString(nil, 1, message("pause1", message("web", uid, "prod")))}
		case "ListContainers":
			return grpctest.Answer{Message: grpc.AppendString(nil, 1, message("c1", "pause1", message("main")))}
		}
		return grpctest.Answer{}
	})
	files := map[string]string{}
	for _, g := range []string{"kubepods", pod, pod + "/pause1", pod + "/c1"} {
		for file, text := range map[string]string{"cgroup.procs": "", "cgroup.controllers": "io\n", "io.max": "254:16 rbps=1000 wbps=max riops=max wiops=max\n", "io.stat": ""} {
			files["sys/fs/cgroup/"+g+"/"+file] = text
		}
	}
	for endpoint, name := range map[string]string{"unix://" + socket: "main", "unix:///none": ""} {
		m := manager(t, "v2", files, host.Options{Sockets: map[string]string{"pod": endpoint, "containerd": "/none"}})
		w, err := m.Watch(0, false)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		s, err := w.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, g := range s.Groups {
			want := targets.InPod{}
			if g.Path == "/"+pod+"/c1" && name != "" {
				want = targets.InPod{Namespace: "prod", Pod: "web", Container: name}
			}
			if strings.HasPrefix(g.Path, "/"+pod) {
				seen++
			}
			if g.InPod != want {
				t.Errorf("%s is %+v, want %+v", g.Path, g.InPod, want)
			}
		}
		if seen != 3 {
			t.Errorf("%d groups of the pod are watched, of %d; %d: %v", seen, len(s.Groups), s.Unread, s.Unreadable)
		}
		want := targets.Owner{Kind: "unknown"}
		if name != "" {
			want = targets.Owner{Kind: "kubernetes", Name: "prod/web"}
		}
		checkOwner(t, m, s, "/"+pod, want)
	}
}

// checkOwner checks that weir top and weir show say the same of who owns a group.
func checkOwner(t *testing.T, m Manager, s *watch.Snapshot, path string, want targets.Owner) {
	t.Helper()
	shown, err := m.ShowAll(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range s.Groups {
		if g.Path == path && g.Owner != want {
			t.Errorf("weir top: %s has the owner %+v, want %+v", path, g.Owner, want)
		}
	}
	at := slices.IndexFunc(shown.Groups, func(g Group) bool { return g.Path == path })
	if at < 0 || shown.Groups[at].Owner != want {
		t.Errorf("weir show: group %d of %+v; want the owner %+v", at, shown.Groups, want)
	}
}
