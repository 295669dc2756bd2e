package node

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// The unit is set up as the guide has it.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	indented := "   " + strings.ReplaceAll(strings.TrimSpace(DropIn), "\n", "\n   ")
	if !strings.Contains(string(guide), indented) {
		t.Errorf("docs/guide/kubernetes.md has not\n%s", indented)
	}
}

// The answer is kubelet's (v1.37), shortened.
func TestStates(t *testing.T) {
	got, err := states([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[
{"metadata":{"name":"one-lab","namespace":"default","uid":"0123abcd","annotations":{"kubernetes.io/config.source":"file","weir.io/write":"2M"}},
 "spec":{"volumes":[]},"status":{"phase":"Running","qosClass":"BestEffort","containerStatuses":[
  {"name":"main","state":{"running":{"startedAt":"2026-11-27T01:00:00Z"}},"lastState":{},"ready":true,"restartCount":2,"containerID":"containerd://abc"}]}},
{"metadata":{"name":"two-lab","uid":"ff"},"status":{"phase":"Pending","qosClass":"Guaranteed"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []State{
		{Name: "one-lab", UID: "0123abcd", QoS: "BestEffort", Container: "abc", Running: true, Restarts: 2,
			Annotations: map[string]string{"kubernetes.io/config.source": "file", "weir.io/write": "2M"}},
		{Name: "two-lab", UID: "ff", QoS: "Guaranteed"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestGroups(t *testing.T) {
	s := State{UID: "0123-abcd", Container: "c1"}
	for _, c := range []struct{ driver, class, group, container string }{
		{"systemd", "Guaranteed", "/c/kubepods.slice/kubepods-pod0123_abcd.slice", "/cri-containerd-c1.scope"},
		{"systemd", "Burstable", "/c/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0123_abcd.slice", "/cri-containerd-c1.scope"},
		{"cgroupfs", "Guaranteed", "/c/kubepods/pod0123-abcd", "/c1"},
		{"cgroupfs", "BestEffort", "/c/kubepods/besteffort/pod0123-abcd", "/c1"},
	} {
		s.QoS = c.class
		n := &Node{Driver: c.driver, unified: "/c"}
		if got := n.Group(s); got != c.group {
			t.Errorf("%s, %s: %s", c.driver, c.class, got)
		}
		if got := n.ContainerGroup(s); got != c.group+c.container {
			t.Errorf("%s, %s: the container's is %s", c.driver, c.class, got)
		}
	}
}

// Each manifest of a pod is another one, and has the pod's annotations and what makes its class.
func TestManifest(t *testing.T) {
	n, p := &Node{image: image, weir: "/w"}, &Pod{Name: "a", QoS: "Guaranteed", Annotations: map[string]string{"weir.io/write": "2M"}, Writes: Cache}
	first, err := n.manifest(p)
	if err != nil {
		t.Fatal(err)
	}
	p.version = "2"
	second, err := n.manifest(p)
	if err != nil || string(first) == string(second) {
		t.Errorf("the second is the first: %v", err)
	}
	var pod struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct {
			Containers []struct {
				Command   []string
				Resources struct{ Requests, Limits map[string]string }
			}
		}
	}
	if err := json.Unmarshal(first, &pod); err != nil {
		t.Fatal(err)
	}
	c := pod.Spec.Containers[0]
	if pod.Metadata.Annotations["weir.io/write"] != "2M" || c.Resources.Limits["memory"] != c.Resources.Requests["memory"] || c.Resources.Limits["memory"] == "" {
		t.Errorf("%+v", pod)
	}
	if !strings.Contains(c.Command[2], "file=/cache/a ") {
		t.Errorf("it runs %q", c.Command)
	}
}
