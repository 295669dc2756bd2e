package pod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// Kind resolves pod:NAMESPACE/NAME and pod:UID within one hierarchy.
type Kind struct {
	FS          *cgroupfs.FS
	Hierarchy   *cgroupfs.Hierarchy
	SystemdRuns bool
	Root        string       // below which crictl's configuration and the usual sockets are looked for
	Endpoint    string       // $CONTAINER_RUNTIME_ENDPOINT, as crictl has it; empty: its other rules
	Need        targets.Need // of what List lists
}

// Name returns "pod".
func (Kind) Name() string { return "pod" }

// MayKnow returns false, so that no bare name is looked up: it has no namespace.
func (Kind) MayKnow(string) bool { return false }

// usualSockets are the sockets where crictl looks by default, and where k3s and RKE2, k0s and
// MicroK8s have their containerd.
var usualSockets = []string{"/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/cri-dockerd.sock",
	"/run/k3s/containerd/containerd.sock", "/run/k0s/containerd.sock", "/var/snap/microk8s/common/run/containerd.sock", "/var/run/cri-dockerd.sock"}

// config is crictl's configuration, in which an administrator sets the runtime's socket.
const config = "/etc/crictl.yaml"

// configMost bounds that, in bytes.
const configMost = 1 << 20

// all lists the pods of every runtime that answers.
func (k Kind) all(ctx context.Context) (all []sandbox) {
	sockets, err := k.sockets()
	if err != nil {
		return nil
	}
	for _, socket := range sockets {
		if some, err := (runtime{socket}).sandboxes(ctx, nil, namesAlone); err == nil {
			all = append(all, some...)
		}
	}
	return slices.DeleteFunc(all, func(s sandbox) bool { return !isName(s.namespace) || !isName(s.name) })
}

// sockets returns the sockets where the runtime may be, the likeliest first: if there are
// several, kubelet uses one, and only kubelet knows which.
func (k Kind) sockets() ([]string, error) {
	one := func(path string, err error) ([]string, error) { return []string{path}, err }
	if k.Endpoint != "" {
		return one(socketOf("CONTAINER_RUNTIME_ENDPOINT", k.Endpoint))
	}
	text, err := peek.Regular(filepath.Join(k.Root, config), configMost)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("find the container runtime: %w", err)
	}
	if endpoint := endpointIn(string(text)); endpoint != "" {
		return one(socketOf(config, endpoint))
	}
	var there []string
	for _, s := range usualSockets {
		if _, err := os.Stat(filepath.Join(k.Root, s)); err == nil {
			there = append(there, filepath.Join(k.Root, s))
		}
	}
	if len(there) == 0 {
		there = []string{filepath.Join(k.Root, usualSockets[0])}
	}
	return there, nil
}

// The labels that kubelet gives to pods (kubernetes, pkg/kubelet/types/labels.go).
const (
	uidLabel       = "io.kubernetes.pod.uid"
	nameLabel      = "io.kubernetes.pod.name"
	namespaceLabel = "io.kubernetes.pod.namespace"
)

// find asks the runtimes for pods, until one has matching pods. That there are none is said if each of
// them has answered, or is no CRI: one that is just started again has its pods all the same, and what
// weir has on record of them stays. The labels are those that kubelet gives to matching pods, so that a runtime
// with many pods tells of these alone; if no pod has them, all are looked through, because others than kubelet make pods
// too. nil: all are.
func (k Kind) find(ctx context.Context, labels map[string]string, need targets.Need, is func(sandbox) bool) (r runtime, found []sandbox, err error) {
	if labels != nil {
		if r, found, err = k.findAmong(ctx, labels, need, is); len(found) > 0 {
			return r, found, err
		}
	}
	return k.findAmong(ctx, nil, need, is)
}

// findAmong is find among the pods that have labels.
func (k Kind) findAmong(ctx context.Context, labels map[string]string, need targets.Need, is func(sandbox) bool) (r runtime, found []sandbox, err error) {
	sockets, err := k.sockets()
	if err != nil {
		return r, nil, err
	}
	var first error
	answered, silent := false, false
	for _, socket := range sockets {
		all, err := runtime{socket}.sandboxes(ctx, labels, need)
		if err != nil {
			if first == nil || !silent && !isNoCRI(err) {
				first, r = err, runtime{socket}
			}
			silent = silent || !isNoCRI(err)
			continue
		}
		found = slices.DeleteFunc(all, func(s sandbox) bool { return !is(s) })
		if answered = true; len(found) > 0 {
			return runtime{socket}, found, nil
		}
	}
	if answered && !silent {
		first = nil
	}
	return r, nil, first
}

// endpointIn reads the runtime's endpoint from crictl's configuration, which is YAML with one
// key and value per line. (A package for all of YAML would take 0.2 ms of each start.)
func endpointIn(text string) string {
	for line := range strings.Lines(text) {
		if value, is := strings.CutPrefix(line, "runtime-endpoint:"); is {
			value, _, _ = strings.Cut(value, " #")
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

func socketOf(source, endpoint string) (string, error) {
	if path := strings.TrimPrefix(endpoint, "unix://"); filepath.IsAbs(path) {
		return path, nil
	}
	return "", fmt.Errorf("%s has %q as the container runtime's endpoint: write unix:///PATH, the socket of one on this host", source, endpoint)
}

// Resolve finds the group of a running pod.
func (k Kind) Resolve(ctx context.Context, name string) (targets.Target, error) {
	spec := "pod:" + name
	namespace, pod, named := strings.Cut(name, "/")
	if !isName(namespace) || named && !isName(pod) {
		return targets.Target{}, &targets.NameError{
			Err: fmt.Errorf("pod %q: name a pod by its namespace and name, such as pod:default/web, or by its UID, each of at most %d of a-z, A-Z, 0-9 and _ . - (crictl pods)", name, nameMax)}
	}
	labels := map[string]string{uidLabel: name}
	if named {
		labels = map[string]string{namespaceLabel: namespace, nameLabel: pod}
	}
	r, all, err := k.find(ctx, labels, namesAlone, func(s sandbox) bool {
		return isName(s.namespace) && isName(s.name) && (named && s.namespace == namespace && s.name == pod || !named && s.uid == name)
	})
	if err != nil && r.socket == "" {
		return targets.Target{}, err
	}
	if err != nil {
		return targets.Target{}, explain(spec, r.socket, err)
	}
	switch len(all) {
	case 0:
		return targets.Target{}, &targets.NotFound{Target: spec, Why: "no such pod runs on this host; crictl pods lists those that do"}
	case 1:
	default:
		return targets.Target{}, fmt.Errorf("%s: the runtime has %d pods of this name; name one by its UID: %s", spec, len(all), strings.Join(uids(all), ", "))
	}
	if k.Hierarchy.Version == cgroupfs.V1 {
		return targets.Target{}, k.notOnV1(ctx, spec, r, all[0])
	}
	group, firsts, err := k.groupOf(ctx, spec, r, all[0])
	if err != nil {
		return targets.Target{}, err
	}
	owner := targets.OwnerOf(group, k.SystemdRuns)
	owner.Kind, owner.Name = "kubernetes", all[0].namespace+"/"+all[0].name
	return targets.Target{Kind: "pod", Name: name, Group: group, Owner: owner, Firsts: firsts}, nil
}

func uids(all []sandbox) (list []string) {
	for _, s := range all {
		list = append(list, "pod:"+s.uid)
	}
	return list
}

// groupOf finds the group that a pod's containers share, and a process of each part below it:
// the group above the one of the sandbox's process, which is named after the sandbox. Only the
// pod's containers may be below it: a runtime that was told no group for the pod puts the
// containers of all pods into one group.
func (k Kind) groupOf(ctx context.Context, spec string, r runtime, s sandbox) (cgroupfs.Group, []int, error) {
	pid, err := r.pid(ctx, s)
	if err != nil {
		return cgroupfs.Group{}, nil, explain(spec, r.socket, err)
	}
	if pid <= 0 {
		return k.byUID(ctx, spec, r, s)
	}
	group, err := k.FS.OfProcess(k.Hierarchy, pid)
	if cgroupfs.IsGone(err) {
		return group, nil, fmt.Errorf("%s: its first process, %d, is not on this host: the pod has just ended, or the runtime runs elsewhere; try again", spec, pid)
	}
	if err != nil {
		return group, nil, err
	}
	for !group.IsRoot() && !targets.IsCalledAfter(group.Path(), s.id) {
		group = group.Parent()
	}
	if group.IsRoot() || group.Parent().IsRoot() {
		return group, nil, fmt.Errorf("%s: the cgroup of its first process, %d, is not named after the pod, or is not below the pod's group: the pod has just ended, or runs in a virtual machine of its own; name the group (cgroup:/PATH)", spec, pid)
	}
	shared := group.Parent()
	ids, err := r.containers(ctx, s)
	if err != nil {
		return group, nil, explain(spec, r.socket, err)
	}
	firsts, err := k.parts(spec, r, shared, append(ids, s.id))
	return shared, firsts, err
}

// byUID finds a pod's group by the name that kubelet gives it, because cri-dockerd reports no
// process.
func (k Kind) byUID(ctx context.Context, spec string, r runtime, s sandbox) (cgroupfs.Group, []int, error) {
	shared, found, err := search(k.Hierarchy.Root(), s.uid, 0)
	if err != nil {
		return shared, nil, err
	}
	if !found {
		return shared, nil, fmt.Errorf("%s: the runtime does not say which process holds the pod, and no group is named after it (pod%s); name one of its containers (%s), or the pod's group (cgroup:/PATH, from systemd-cgls)", spec, s.uid, r.containerSpec("ID"))
	}
	ids, err := r.containers(ctx, s)
	if err != nil {
		return shared, nil, explain(spec, r.socket, err)
	}
	firsts, err := k.parts(spec, r, shared, append(ids, s.id))
	return shared, firsts, err
}

// searchDepth bounds how deep the search for a pod's group goes:
// kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/...-podUID.slice.
const searchDepth = 4

// search looks for a pod's group among those that kubelet makes.
func search(in cgroupfs.Group, uid string, depth int) (cgroupfs.Group, bool, error) {
	children, err := in.Children()
	if cgroupfs.IsGone(err) {
		return in, false, nil
	}
	if err != nil {
		return in, false, err
	}
	for _, child := range children {
		if targets.IsPodOf(child.Path(), uid) {
			return child, true, nil
		}
		last := path.Base(child.Path())
		kubelets := strings.Contains(last, "kube") || last == "burstable" || last == "besteffort"
		if !kubelets || depth+1 >= searchDepth || strings.Contains(last, "pod") && !strings.Contains(last, "kubepods") {
			continue
		}
		if g, found, err := search(child, uid, depth+1); found || err != nil {
			return g, found, err
		}
	}
	return in, false, nil
}

// containerSpec names a container of a runtime as a target.
func (r runtime) containerSpec(id string) string {
	if strings.Contains(r.socket, "docker") {
		return "docker:" + id
	}
	return "containerd:k8s.io/" + id
}

// parts finds a process of each group in a pod's group, and returns an error if the group is
// not the pod's alone.
func (k Kind) parts(spec string, r runtime, shared cgroupfs.Group, ids []string) (firsts []int, err error) {
	children, err := shared.Children()
	if err != nil {
		return nil, err
	}
	foreign := ""
	for _, child := range children {
		if !slices.ContainsFunc(ids, func(id string) bool { return targets.IsCalledAfter(child.Path(), id) }) {
			foreign = child.Path()
			break
		}
		members, err := targets.Members(child)
		if err != nil {
			return nil, err
		}
		if len(members) > 0 {
			firsts = append(firsts, members[0])
		}
	}
	own, err := shared.Processes()
	if err != nil {
		return nil, err
	}
	if len(own) > 0 {
		foreign = fmt.Sprintf("process %d", own[0])
	}
	if foreign != "" {
		return nil, fmt.Errorf("%s: its containers are in cgroup %s with others (%s): the pod has no cgroup of its own, or a container has just started; limit each container (%s, from crictl ps), or all in the group (cgroup:%s)",
			spec, shared.Path(), foreign, r.containerSpec("ID"), shared.Path())
	}
	return firsts, nil
}

// notOnV1 says why a pod cannot be limited on v1, and what can be limited instead.
func (k Kind) notOnV1(ctx context.Context, spec string, r runtime, s sandbox) error {
	ids, err := r.containers(ctx, s)
	if err != nil {
		return explain(spec, r.socket, err)
	}
	var each []string
	for _, id := range ids {
		each = append(each, r.containerSpec(id))
	}
	return &fault.Unsupported{Feature: spec, Reason: "on cgroup v1 a limit applies to one group and not to its child groups, and each container of a pod has its own group",
		Remedy: "limit the containers one by one (" + strings.Join(each, ", ") + "), or boot with cgroup v2"}
}

// nameMax bounds names of pods and namespaces, which in Kubernetes are DNS names.
const nameMax = 253

// isName reports whether a pod or a namespace can have this name. Kubernetes accepts fewer
// names; crictl accepts any.
func isName(text string) bool { return targets.IsWord(text, nameMax) }

// isNoCRI reports whether what answers has no pods, because it does not speak CRI.
func isNoCRI(err error) bool { return grpc.IsCode(err, grpc.Unimplemented) }

// explain says for the user why a question failed.
func explain(spec, socket string, err error) error {
	if isNoCRI(err) {
		return &targets.NoKindError{Err: &fault.Unsupported{Feature: spec, Reason: "what answers at " + socket + " does not speak CRI version 1",
			Remedy: "enable containerd's CRI (it must not be in disabled_plugins of /etc/containerd/config.toml), or name the runtime's socket with CONTAINER_RUNTIME_ENDPOINT=unix:///PATH"}}
	}
	if grpc.IsCode(err, grpc.ResourceExhausted) {
		return fmt.Errorf("%s: ask container runtime at %s: its list is larger than it sends: %w (raise max_send_message_size in containerd's configuration, or grpc_max_send_msg_size in CRI-O's)", spec, socket, err)
	}
	return targets.Daemon{Title: "container runtime", Socket: socket, Check: "crictl version",
		Remedy: "start the container runtime, or name its socket with CONTAINER_RUNTIME_ENDPOINT=unix:///PATH"}.Explain(spec, err)
}

// Namer returns a function that gives the name of a pod's own group in this kind, and "" for
// other groups. kubelet names it after the pod's UID: podUID, or kubepods-...-podUID.slice with
// _ for -.
func (k Kind) Namer(ctx context.Context) func(group string) string {
	pods := map[string]string{}
	for _, s := range k.all(ctx) {
		pods["pod"+s.uid] = "pod:" + s.namespace + "/" + s.name
	}
	return func(group string) string {
		last := path.Base(group)
		if slice, is := strings.CutSuffix(last, ".slice"); is {
			last = strings.ReplaceAll(slice[strings.LastIndex(slice, "-")+1:], "_", "-")
		}
		return pods[last]
	}
}

// Live names the pods whose names begin with prefix, for completion. A runtime that cannot be
// asked has none.
func (k Kind) Live(ctx context.Context, prefix string) []string {
	var names []string
	for _, s := range k.all(ctx) {
		if name := s.namespace + "/" + s.name; strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
