package planned

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

// A container whose owner does not tell its labels keeps the limits that it has, and their record. Others are looked at.
func TestAContainerWhosePlanCannotBeTold(t *testing.T) {
	w := newPods(t, map[string]string{"weir.io/write.main": "5M"})
	m := w.manager(t, "")
	m.Config.Annotated = true
	if _, err := m.Apply(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	limited := w.inForce(t, dbID)
	socket := "unix://" + grpctest.Serve(t, func(method string, _ http.Header, _ []byte) grpctest.Answer {
		item := string(grpc.AppendString(nil, 1, "k8s.io"))
		switch method[strings.LastIndexByte(method, '.')+1:] {
		case "Containers/ListStream", "Containers/Get":
			label := grpc.AppendString(grpc.AppendString(nil, 1, plans.OwnLabel), 2, strings.Repeat("x", 1<<20))
			item = string(grpc.AppendString(grpc.AppendString(nil, 1, dbID), 2, string(label)))
		case "Tasks/Get":
			item = string(grpc.AppendNumber(nil, 3, 4910))
		}
		return grpctest.Answer{Message: grpc.AppendString(nil, 1, item)}
	})
	m.Host = w.host.With("containerd", socket)
	gone := &record{Target: "containerd:k8s.io/gone", Name: "containerd:k8s.io/gone", Host: socket, Plan: "small"}
	if err := gone.save(w.host.Root); err != nil {
		t.Fatal(err)
	}
	isUnread := func(what string, err error) {
		t.Helper()
		var unread *targets.UnreadError
		if !errors.As(err, &unread) || unread.Target != "containerd:k8s.io/"+dbID {
			t.Errorf("%s: %v", what, err)
		}
	}
	for names, want := range map[string]int{"": 1, dbID: 0} {
		var only []string
		if names != "" {
			only = []string{names}
		}
		all, err := m.OfKind(t.Context(), "containerd", only)
		if isUnread("a look at "+names, err); len(all) != want || want == 1 && (all[0].Key() != gone.Target || !all[0].Lapsed()) {
			t.Errorf("%q: %+v", names, all)
		}
	}
	_, err := m.Show(t.Context(), "containerd:k8s.io/"+dbID)
	isUnread("show", err)
	_, err = m.Apply(t.Context(), false)
	isUnread("apply", err)
	if got := w.inForce(t, dbID); limited == "" || got != limited {
		t.Errorf("in force: %q, was %q", got, limited)
	}
	for target, want := range map[string]bool{"containerd:k8s.io/" + dbID: true, gone.Target: false} {
		if _, err := os.Stat(filepath.Join(w.host.Root, records, fileOf(target))); (err == nil) != want {
			t.Errorf("the record of %s: %v", target, err)
		}
	}
}

// Whether a container whose labels are not known is the heir of a target with its group cannot be told.
func TestAnHeirWhosePlanCannotBeTold(t *testing.T) {
	w := newPods(t, nil)
	io, err := w.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	g, err := io.Group("/kubepods/pod" + podUID + "/" + dbID)
	if err != nil {
		t.Fatal(err)
	}
	m := w.manager(t, "")
	m.Config.Annotated = true
	for _, unread := range []*targets.UnreadError{nil, {Target: "x"}} {
		h := heirs{m: m, lists: map[string]listing{"containerd": {all: []targets.Listed{{Kind: "containerd", Name: "k8s.io/" + dbID, ID: dbID, Unread: unread}}}}}
		heir, err := h.of(t.Context(), Target{key: "unit:x.scope", found: &targets.Target{Group: g}})
		if heir != nil || errors.Is(err, error(unread)) != (unread != nil) {
			t.Errorf("%+v, %v", heir, err)
		}
	}
}

// A container with megabytes of labels that weir does not go by has its plan as any other, by the labels that plans name.
func TestAContainerWithLargeLabels(t *testing.T) {
	w := newPods(t, nil)
	m := w.manager(t, "plans: {a: {write: 2MB/s}, b: {write: 3MB/s}}\nassign: [{label: {tier: gold}, plan: a}, {label: {team: x}, plan: b}]\ndefault: b")
	labels := []string{message("chart", strings.Repeat("x", 10<<20)), message("tier", "gold"), message("io.kubernetes.container.name", "main"), message("io.kubernetes.pod.uid", podUID)}
	m.Host = w.host.With("containerd", "unix://"+grpctest.Serve(t, func(method string, _ http.Header, _ []byte) grpctest.Answer {
		item := message("k8s.io")
		switch method[strings.LastIndexByte(method, '.')+1:] {
		case "Containers/ListStream", "Containers/Get":
			item = message(dbID)
			for _, label := range labels {
				item += string(grpc.AppendString(nil, 2, label))
			}
		case "Tasks/Get":
			item = string(grpc.AppendNumber(nil, 3, 4910))
		}
		return grpctest.Answer{Message: grpc.AppendString(nil, 1, item)}
	}))
	for tier, want := range map[string]string{"gold": "wbps=2000000", "iron": "wbps=3000000"} {
		labels[1] = message("tier", tier)
		if _, err := m.Apply(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if got := w.inForce(t, dbID); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", tier, got, want)
		}
	}
}

// A pod whose own annotations are too large keeps its limits, and so do its containers: what they ask is not known.
func TestAPodWhosePlanCannotBeTold(t *testing.T) {
	asked := map[string]string{"weir.io/write": "5M", "weir.io/write.main": "4M", "other.io/chart": strings.Repeat("x", 3<<20)}
	w := newPods(t, asked)
	m := w.manager(t, "")
	m.Config.Annotated = true
	if _, err := m.Apply(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	pod, container := w.inForce(t, ""), w.inForce(t, dbID)
	if !strings.Contains(pod, "wbps=5000000") || !strings.Contains(container, "wbps=4000000") {
		t.Fatalf("the pod has %q, its container %q", pod, container)
	}
	asked["weir.io/plan"] = strings.Repeat("x", 3<<20)
	for kind, name := range map[string]string{"pod": "pod:prod/web", "containerd": "containerd:k8s.io/" + dbID} {
		all, err := m.OfKind(t.Context(), kind, nil)
		var unread *targets.UnreadError
		if len(all) != 0 || !errors.As(err, &unread) || unread.Target != name {
			t.Errorf("%s: %+v, %v", kind, all, err)
		}
	}
	if _, err := m.Apply(t.Context(), false); err == nil || w.inForce(t, "") != pod || w.inForce(t, dbID) != container {
		t.Errorf("the pod has %q, its container %q, %v", w.inForce(t, ""), w.inForce(t, dbID), err)
	}
}

// Nor can it be told of a pod as long as the API server is not read.
func TestAnHeirThatIsNotRead(t *testing.T) {
	lab.Unit(t)
	w := newPods(t, nil)
	g := hosttest.Group(t, w.host, "/kubepods/pod"+podUID)
	m := w.manager(t, "")
	m.Config.Annotated = true
	for name, c := range map[string]struct {
		live  live
		heir  string
		fails bool
	}{
		"nothing is read":      {live{unread: true}, "", true},
		"its volumes are not":  {live{is: true, unreadVolumes: true}, "", true},
		"it has a limit":       {live{is: true, all: map[string]string{"weir.io/write": "5M"}, unreadVolumes: true}, "pod:" + podUID, false},
		"it asks for no limit": {live{is: true}, "", false},
	} {
		m.Live = &c.live
		heir, err := newHeirs(m).of(t.Context(), Target{key: "unit:x.slice", found: &targets.Target{Group: g}, group: &g})
		if (err != nil) != c.fails || (heir != nil) != (c.heir != "") || heir != nil && heir.key != c.heir {
			t.Errorf("%s: %+v, %v", name, heir, err)
		}
	}
}

// What holds a pod has ended, and its runtime does not list the pod any more: a container of it that runs on keeps the limits
// of the pod's annotations, and has no others.
func TestAContainerWhosePodIsNotListed(t *testing.T) {
	lab.Unit(t)
	all := map[string]string{"weir.io/write.main": "5M"}
	w := newPods(t, all)
	m := w.manager(t, "")
	m.Config.Annotated = true
	apply := func(want string) {
		t.Helper()
		if _, err := m.Apply(t.Context(), false); err != nil || w.inForce(t, dbID) != want {
			t.Errorf("%q, want %q: %v", w.inForce(t, dbID), want, err)
		}
	}
	const five = "254:0 rbps=- wbps=5000000 riops=- wiops=-; 254:16 rbps=- wbps=5000000 riops=- wiops=-;"
	apply(five)
	m.owners = func(ctx context.Context, kind string, need targets.Need, ids ...string) ([]targets.Listed, error) {
		if kind == "pod" {
			return nil, nil
		}
		return w.host.List(ctx, kind, need, ids...)
	}
	w.Writes = nil
	for range 2 {
		apply(five)
	}
	m.Live = &live{unread: true}
	apply(five)
	m.Live = nil
	found, err := m.OfKind(t.Context(), "containerd", []string{dbID})
	if err != nil || len(found) != 1 || found[0].State != InForce || len(w.Writes) != 0 {
		t.Errorf("%+v, %v; %v", found, err, w.Writes)
	}
	m.owners = nil
	delete(all, "weir.io/write.main")
	apply("")
}
