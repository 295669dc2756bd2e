package source

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/lab"
)

// A pod that is named by its UID is the only one that its runtime is asked for.
func TestOnlyThePodIsLookedAt(t *testing.T) {
	lab.Unit(t)
	message := func(fields ...string) (m string) {
		for i, text := range fields {
			m += string(grpc.AppendString(nil, grpc.FieldNumber(i+1), text))
		}
		return m
	}
	files := map[string]string{}
	for i, pid := range []string{"4900", "4910"} {
		group := fmt.Sprintf("/kubepods/podu%d", i)
		files["proc/"+pid+"/cgroup"] = fmt.Sprintf("0::%s/s%d\n", group, i)
		files["proc/"+pid+"/mountinfo"] = "430 400 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n"
		files["sys/fs/cgroup"+group+"/cgroup.procs"], files["sys/fs/cgroup"+group+"/io.max"] = "", ""
		files[fmt.Sprintf("sys/fs/cgroup%s/s%d/cgroup.procs", group, i)] = pid + "\n"
	}
	var asked []string
	socket := grpctest.Serve(t, func(method string, _ http.Header, request []byte) grpctest.Answer {
		var m []byte
		for i, pid := range []string{"4900", "4910"} {
			id := fmt.Sprint("s", i)
			switch {
			case strings.HasSuffix(method, "/ListPodSandbox"):
				m = grpc.AppendString(m, 1, message(id, message(fmt.Sprint("web-", i), fmt.Sprint("u", i), "prod")))
			case strings.HasSuffix(method, "/PodSandboxStatus") && strings.Contains(string(request), id):
				asked = append(asked, id)
				m = grpc.AppendString(grpc.AppendString(nil, 1, message(id)), 2, message("info", `{"pid":`+pid+`}`))
			}
		}
		return grpctest.Answer{Message: m}
	})
	h := hosttest.Open(t, "v2", files, host.Options{Sockets: map[string]string{"pod": "unix://" + socket}})
	config, err := planfile.Read([]plans.File{{Name: "a.yaml", Text: []byte("plans: {p: {write: 1MB/s}}\nassign: [{pod: {namespace: prod}, plan: p}]")}})
	if err != nil {
		t.Fatal(err)
	}
	k := &Kind{kind: "pod", host: h, opened: time.Now(), options: Options{Plans: NewPlans(config)}}
	for names, want := range map[string]string{"u1": "[pod:u1] [s1]", "": "[pod:u0 pod:u1] [s0 s1]", "u": "[] []"} {
		asked = nil
		var only []string
		if names != "" {
			only = []string{names}
		}
		all, err := k.Look(t.Context(), only)
		if err != nil {
			t.Fatal(err)
		}
		found := []string{}
		for _, one := range all {
			if found = append(found, one.Key); one.ID != "u"+one.Key[len(one.Key)-1:] {
				t.Errorf("the tree tells of %s by %q", one.Key, one.ID)
			}
		}
		if got := fmt.Sprint(found, " ", asked); got != want {
			t.Errorf("%q: %s, want %s", names, got, want)
		}
	}
}

// The tree names the pod, and the container, whose group has changed: a node with many pods is not
// asked for all of them with each start. It names them again later, when their runtime lists them.
func TestTheTreeNamesPods(t *testing.T) {
	lab.Unit(t)
	h := hosttest.Open(t, "v2", nil, host.Options{})
	io, err := h.IO()
	if err != nil {
		t.Fatal(err)
	}
	const uid = "8f14e45f-ceea-467f-a8d0-3f2a9c1b5d7e"
	const slice = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8f14e45f_ceea_467f_a8d0_3f2a9c1b5d7e.slice"
	for group, want := range map[string][]named{
		"/kubepods/burstable/pod" + uid:               {{"pod", uid}},
		"/kubepods/burstable/pod" + uid + "/" + webID: {{"pod", uid}, {"containerd", webID}},
		slice: {{"pod", uid}},
		slice + "/cri-containerd-" + webID + ".scope": {{"pod", uid}, {"containerd", webID}},
		"/kubepods/burstable":                         {{"pod", ""}, {"containerd", ""}},
		"/kubepods/burstable/pod" + uid + "/x":        {{"pod", ""}, {"containerd", ""}},
		"/kubepods/pod":                               {{"pod", ""}, {"containerd", ""}},
		"/kubepods.slice/kubepods-burstable.slice":    {{"pod", ""}, {"containerd", ""}},
		"/mine": {{"containerd", ""}},
	} {
		g, err := io.Group(group)
		if err != nil {
			t.Fatal(err)
		}
		if got := namesOf(g, false); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", group, got, want)
		}
	}
	var mu sync.Mutex
	told := map[string]int{}
	tells := func(how string) func(kind, name string) {
		return func(kind, name string) {
			mu.Lock()
			defer mu.Unlock()
			told[how+kind+":"+name]++
		}
	}
	var ended []string
	tr := &Tree{Options: Options{Ended: func(kind, name string) { ended = append(ended, kind+":"+name) }}, Changed: tells(""), Soon: tells("soon ")}
	defer tr.endLater()
	born := []tree.Event{{Kind: tree.Born, Path: "/kubepods/pod" + uid}}
	tr.tell(io, born, false)
	tr.tell(io, born, false)
	count := func(what string) int {
		mu.Lock()
		defer mu.Unlock()
		return told[what]
	}
	if count("pod:"+uid) != 2 || len(told) != 1 {
		t.Errorf("%v", told)
	}
	for deadline := time.Now().Add(patience); count("pod:"+uid) < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not named again")
		}
	}
	// While a runtime asks before each start, what is new is in no hurry. The end of a container is not that of its pod.
	tr.Options.Asked = func() bool { return true }
	container := "/kubepods/pod" + uid + "/" + webID
	before := count("pod:" + uid)
	tr.tell(io, []tree.Event{born[0], {Kind: tree.Born, Path: container}, {Kind: tree.Ended, Path: container}, {Kind: tree.Born, Path: "/mine"}}, false)
	if count("pod:"+uid) != before || count("containerd:"+webID) != 0 || count("containerd:") != 1 || count("soon pod:"+uid) != 3 || count("soon containerd:"+webID) != 2 {
		t.Errorf("%v", told)
	}
	if fmt.Sprint(ended) != "[containerd:"+webID+"]" {
		t.Errorf("ended %v", ended)
	}
	if tr.tell(io, []tree.Event{{Kind: tree.Ended, Path: born[0].Path}}, false); len(ended) != 2 {
		t.Errorf("ended %v", ended)
	}
	tr.Options.Asked = nil
	for i := range 2 * laterMost {
		tr.tell(io, []tree.Event{{Kind: tree.Born, Path: fmt.Sprintf("/kubepods/pod%d", i)}}, false)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if len(tr.later) > laterMost+2*len(lookLater) {
		t.Errorf("%d looks are due", len(tr.later))
	}
}
