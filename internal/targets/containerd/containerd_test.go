package containerd

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/targets"
)

func TestIdentifiers(t *testing.T) {
	for name, want := range map[string]bool{
		"web": true, "k8s.io": true, "a-b_c.d": true, "3f2a": true, strings.Repeat("x", 76): true,
		"": false, ".": false, "..": false, "a/b": false, "-x": false, "x-": false, "a b": false, "a\nb": false, "köln": false, strings.Repeat("x", 77): false,
	} {
		if isIdentifier(name) != want {
			t.Errorf("isIdentifier(%q) = %t", name, !want)
		}
	}
}

// daemon answers as containerd does that has containers and their processes.
func daemon(t *testing.T, processes map[string]uint64) (socket string) {
	t.Helper()
	return grpctest.Serve(t, func(method string, metadata http.Header, request []byte) grpctest.Answer {
		if metadata.Get("containerd-namespace") != "k8s.io" && !strings.HasSuffix(method, "Namespaces/List") {
			return grpctest.Answer{}
		}
		var text string
		if err := grpc.Fields(request, func(_ grpc.FieldNumber, value []byte) error { text = string(value); return nil }); err != nil {
			t.Error(err)
		}
		var message []byte
		switch method {
		case "/containerd.services.namespaces.v1.Namespaces/List":
			message = grpc.AppendString(nil, 1, string(grpc.AppendString(nil, 1, "k8s.io")))
		case "/containerd.services.containers.v1.Containers/ListStream":
			for id := range processes {
				if strings.HasPrefix(id, strings.TrimPrefix(text, "id~=^")) {
					message = grpc.AppendString(message, 1, string(grpc.AppendString(grpc.AppendString(nil, 1, id), 3, "image")))
				}
			}
		case "/containerd.services.containers.v1.Containers/Get":
			if _, is := processes[text]; !is {
				return grpctest.Answer{Code: grpc.NotFound, Text: "container " + text + ": not found"}
			}
			message = grpc.AppendString(nil, 1, string(grpc.AppendString(nil, 1, text)))
		case "/containerd.services.tasks.v1.Tasks/Get":
			if processes[text] == 0 {
				return grpctest.Answer{Code: grpc.NotFound, Text: "no running task found"}
			}
			message = grpc.AppendString(nil, 1, string(grpc.AppendNumber(grpc.AppendNumber(grpc.AppendString(nil, 2, text), 3, processes[text]), 4, 2)))
		default:
			t.Errorf("asked %s", method)
		}
		return grpctest.Answer{Message: message}
	})
}

// Containers are listed with their labels, also those that do not run, and not Docker's.
func TestList(t *testing.T) {
	message := func(fields ...string) string {
		var m []byte
		for i, f := range fields {
			m = grpc.AppendString(m, grpc.FieldNumber(i+1), f)
		}
		return string(m)
	}
	k := Kind{Address: grpctest.Serve(t, func(method string, metadata http.Header, _ []byte) grpctest.Answer {
		var answer []byte
		switch in := metadata.Get("containerd-namespace"); {
		case strings.HasSuffix(method, "Namespaces/List"):
			for _, namespace := range []string{"k8s.io", "moby", "../x"} {
				answer = grpc.AppendString(answer, 1, message(namespace))
			}
		case in == "k8s.io":
			answer = grpc.AppendString(nil, 1, message("web", message("weir.plan", "small"))+message("", message("a", "b"))[2:])
			answer = grpc.AppendString(answer, 1, message("../evil"))
		default:
			t.Errorf("%s is asked in %q", method, in)
		}
		return grpctest.Answer{Message: answer}
	})}
	got, err := k.List(t.Context())
	if err != nil || len(got) != 1 || got[0].String() != "containerd:k8s.io/web" || got[0].ID != "web" || len(got[0].Labels) != 2 || got[0].Labels["weir.plan"] != "small" || got[0].Labels["a"] != "b" {
		t.Errorf("%+v, %v", got, err)
	}
}

// host makes one with v2 and processes in groups.
func host(t *testing.T, groups map[string]string) Kind {
	t.Helper()
	files := map[string]string{}
	for pid, group := range groups {
		files["proc/"+pid+"/cgroup"] = "0::" + group + "\n"
	}
	h := cgrouptest.New(t, cgroupfs.V2, files)
	return Kind{FS: h.FS, Hierarchy: h.IO, SystemdRuns: true, Root: h.Root}
}

var long = strings.Repeat("0a", 32) // an id of the CRI's

// link puts a daemon's socket at its usual place.
func link(t *testing.T, root, place, socket string) {
	t.Helper()
	file := filepath.Join(root, place)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.Symlink(socket, file)); err != nil {
		t.Fatal(err)
	}
}

// ended is the socket of a daemon that has ended.
func ended(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// A host with Docker and k3s has two containerds, and each is asked. One of them can have ended
// and left its socket: the others have their containers, and that there is none of a name is not known.
func TestSeveralContainerds(t *testing.T) {
	k := host(t, map[string]string{"11": "/k8s.io/dockers", "12": "/k8s.io/k3s"})
	link(t, k.Root, usualSockets[0], daemon(t, map[string]uint64{"dockers": 11}))
	link(t, k.Root, usualSockets[1], daemon(t, map[string]uint64{"k3s": 12}))
	for _, id := range []string{"dockers", "k3s"} {
		got, err := k.Resolve(t.Context(), "k8s.io/"+id)
		if err != nil || got.Group.Path() != "/k8s.io/"+id {
			t.Errorf("%s: %s, %v", id, got.Group.Path(), err)
		}
		if got := k.Namer(t.Context())("/k8s.io/" + id); got != "containerd:k8s.io/"+id {
			t.Errorf("the group of %s is %q", id, got)
		}
	}
	var missing *targets.NotFound
	if _, err := k.Resolve(t.Context(), "k8s.io/none"); !errors.As(err, &missing) {
		t.Errorf("none: %v", err)
	}
	link(t, k.Root, usualSockets[2], ended(t))
	var silent *targets.NoKindError
	if _, err := k.Resolve(t.Context(), "k8s.io/none"); !errors.As(err, &silent) {
		t.Errorf("none of those that answer: %v", err)
	}
	if got, err := k.Resolve(t.Context(), "k8s.io/k3s"); err != nil || got.Group.Path() != "/k8s.io/k3s" {
		t.Errorf("one of those that answer: %s, %v", got.Group.Path(), err)
	}
	if got := k.Live(t.Context(), "k8s.io/"); !slices.Equal(got, []string{"k8s.io/dockers", "k8s.io/k3s"}) {
		t.Errorf("live: %q", got)
	}
	if got := k.Live(t.Context(), "k"); !slices.Equal(got, []string{"k8s.io/"}) {
		t.Errorf("live: %q", got)
	}
	if got, err := k.List(t.Context()); err != nil || len(got) != 2 {
		t.Errorf("list: %v, %v", got, err)
	}
}

func TestResolve(t *testing.T) {
	k := host(t, map[string]string{"11": "/k8s.io/web-1", "12": "/kubepods.slice/pod.slice/cri-containerd-3f2a.scope/init", "13": "/system.slice/containerd.service"})
	k.Address = "unix://" + daemon(t, map[string]uint64{"web-1": 11, "3f2a": 12, "shared": 13, "ended": 99, "stopped": 0, "web-2": 0, long: 0})
	for name, want := range map[string]string{
		"k8s.io/web-1": "/k8s.io/web-1", "k8s.io/3f": "/kubepods.slice/pod.slice/cri-containerd-3f2a.scope", "k8s.io/3f2a": "/kubepods.slice/pod.slice/cri-containerd-3f2a.scope",
	} {
		got, err := k.Resolve(t.Context(), name)
		if err != nil || got.Group.Path() != want || got.Owner.Kind != "containerd" || len(got.Firsts) != 1 || got.String() != "containerd:"+name {
			t.Errorf("%s: %s, %+v, %v", name, got.Group.Path(), got, err)
		}
	}
	for name, want := range map[string]string{
		"k8s.io/web": "several ids begin like this", "k8s.io/none": "no such container", "other/web-1": "no such container",
		"k8s.io/shared": "which is not named after the container and may contain others", "k8s.io/ended": "is not on this host", "k8s.io/stopped": "the container has no process",
		"web": "name a container by its namespace and id", "k8s.io/": "name a container by", "/web": "name a container by", "../web": "name a container by", "k8s.io/a/b": "name a container by",
	} {
		if _, err := k.Resolve(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", name, err, want)
		}
	}
	name := k.Namer(t.Context())
	for group, want := range map[string]string{"/k8s.io/web-1": "containerd:k8s.io/web-1", "/elsewhere/web-1": "", "/kubepods/cri-containerd-" + long + ".scope": "containerd:k8s.io/" + long, "/": "", "/" + long[1:]: ""} {
		if got := name(group); got != want {
			t.Errorf("the group %s is %q, want %q", group, got, want)
		}
	}
	if got := k.Live(t.Context(), "k8s.io/w"); !slices.Equal(got, []string{"k8s.io/web-1", "k8s.io/web-2"}) {
		t.Errorf("live: %q", got)
	}
	if got := k.Live(t.Context(), "k"); !slices.Equal(got, []string{"k8s.io/"}) {
		t.Errorf("live: %q", got)
	}
	var none *targets.NoKindError
	k.Address = ""
	if _, err := k.Resolve(t.Context(), "k8s.io/web-1"); !errors.As(err, &none) {
		t.Errorf("without containerd: %v", err)
	}
}

// Of many containers only those are asked for whose whole ids are named: each comes with all of its specification.
func TestListOfSome(t *testing.T) {
	web, db := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	var asked []string
	socket := grpctest.Serve(t, func(method string, _ http.Header, request []byte) grpctest.Answer {
		if strings.HasSuffix(method, "Namespaces/List") {
			return grpctest.Answer{Message: grpc.AppendString(nil, 1, string(grpc.AppendString(nil, 1, "k8s.io")))}
		}
		asked = nil
		if err := grpc.Fields(request, func(_ grpc.FieldNumber, value []byte) error { asked = append(asked, string(value)); return nil }); err != nil {
			t.Error(err)
		}
		var message []byte
		for _, id := range []string{web, db} {
			if len(asked) == 0 || slices.Contains(asked, "id=="+id) {
				message = grpc.AppendString(message, 1, string(grpc.AppendString(nil, 1, id)))
			}
		}
		return grpctest.Answer{Message: message}
	})
	k := Kind{Address: "unix://" + socket}
	for _, c := range []struct {
		ids, asked []string
		found      int
	}{
		{nil, nil, 2},
		{[]string{web}, []string{"id==" + web}, 1},
		{[]string{web, db}, []string{"id==" + web, "id==" + db}, 2},
		{[]string{web, "abab"}, nil, 2},
		{[]string{"k8s.io/x\n"}, nil, 2},
		{slices.Repeat([]string{db}, filterMost+1), nil, 2},
	} {
		all, err := k.List(t.Context(), c.ids...)
		if err != nil || len(all) != c.found || !slices.Equal(asked, c.asked) {
			t.Errorf("%q: %d found, %v; asked for %q", c.ids, len(all), err, asked)
		}
	}
}
