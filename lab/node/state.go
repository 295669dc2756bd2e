package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// A State is what kubelet says of a pod.
type State struct {
	Name, UID   string
	QoS         string
	Container   string // its id; empty: there is none
	Running     bool   // the container does
	Restarts    int
	Annotations map[string]string
}

// A podList is as kubelet has it, as far as it is asked for.
type podList struct {
	Items []struct {
		Metadata struct {
			Name, UID   string
			Annotations map[string]string
		}
		Status struct {
			QOSClass          string `json:"qosClass"`
			ContainerStatuses []struct {
				ContainerID  string `json:"containerID"`
				RestartCount int    `json:"restartCount"`
				State        struct{ Running *struct{} }
			} `json:"containerStatuses"`
		}
	}
}

// states reads what kubelet says of its pods.
func states(text []byte) (all []State, err error) {
	var list podList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("kubelet's pods: %w", err)
	}
	for _, item := range list.Items {
		s := State{Name: item.Metadata.Name, UID: item.Metadata.UID, QoS: item.Status.QOSClass, Annotations: item.Metadata.Annotations}
		for _, c := range item.Status.ContainerStatuses {
			s.Container, s.Restarts, s.Running = strings.TrimPrefix(c.ContainerID, "containerd://"), c.RestartCount, c.State.Running != nil
		}
		all = append(all, s)
	}
	return all, nil
}

// State is what kubelet says of a pod, if it knows it.
func (n *Node) State(t testing.TB, p *Pod) (s State, is bool) {
	t.Helper()
	r, err := http.Get(n.podsURL())
	if err != nil {
		return s, false // it has just started, or stopped
	}
	defer r.Body.Close()
	var text json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&text); err != nil {
		return s, false
	}
	all, err := states(text)
	if err != nil {
		t.Fatal(err)
	}
	name := p.Name
	if !n.api { // kubelet adds the node's name to that of a static pod
		name += "-" + nodeName
	}
	for _, s := range all {
		if s.Name == name {
			return s, true
		}
	}
	return s, false
}

// Running is what kubelet says of a pod, once its container runs.
func (n *Node) Running(t testing.TB, p *Pod) (s State) {
	t.Helper()
	lab.Await(t, time.Minute, "kubelet to say that pod "+p.Name+" runs", func() (is bool) {
		s, is = n.State(t, p)
		return is && s.Running
	})
	return s
}

// Group is the directory of the pod's cgroup, as kubelet names it (kubernetes, pkg/kubelet/cm).
func (n *Node) Group(s State) string {
	class := strings.ToLower(s.QoS)
	if n.Driver == "systemd" {
		slice := "kubepods.slice"
		in := slice
		if class != "guaranteed" {
			in = filepath.Join(slice, "kubepods-"+class+".slice")
		}
		return filepath.Join(n.unified, in, strings.TrimSuffix(filepath.Base(in), ".slice")+"-pod"+strings.ReplaceAll(s.UID, "-", "_")+".slice")
	}
	in := "kubepods"
	if class != "guaranteed" {
		in = filepath.Join(in, class)
	}
	return filepath.Join(n.unified, in, "pod"+s.UID)
}

// ContainerGroup is the directory of the cgroup of the pod's container.
func (n *Node) ContainerGroup(s State) string {
	if n.Driver == "systemd" {
		return filepath.Join(n.Group(s), "cri-containerd-"+s.Container+".scope")
	}
	return filepath.Join(n.Group(s), s.Container)
}

// KillProgram kills what runs in the pod's container, once that has measured itself.
func (n *Node) KillProgram(t testing.TB, p *Pod) {
	t.Helper()
	var pids []string
	lab.Await(t, 30*time.Second, "pod "+p.Name+" to have one process", func() bool {
		text, err := os.ReadFile(filepath.Join(n.ContainerGroup(n.Running(t, p)), "cgroup.procs"))
		pids = strings.Fields(string(text))
		return err == nil && len(pids) == 1
	})
	run(t, "kill", "-KILL", pids[0])
}
