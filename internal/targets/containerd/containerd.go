package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// Kind resolves containerd:NAMESPACE/ID within one hierarchy.
type Kind struct {
	FS          *cgroupfs.FS
	Hierarchy   *cgroupfs.Hierarchy
	SystemdRuns bool
	Root        string       // below which the usual socket is looked for
	Address     string       // $CONTAINERD_ADDRESS, as ctr has it; empty: the usual socket
	Need        targets.Need // of what List lists
}

// Name returns "containerd".
func (Kind) Name() string { return "containerd" }

// MayKnow returns false, so that no bare name is looked up: containers of Docker and of pods
// are containerd's too, and have better names there.
func (Kind) MayKnow(string) bool { return false }

// usualSockets are containerd's own socket, those in k3s and RKE2, k0s and MicroK8s, and CRI-O's.
var usualSockets = []string{"/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock", "/run/k0s/containerd.sock",
	"/var/snap/microk8s/common/run/containerd.sock", "/run/crio/crio.sock"}

// sockets are where containerd or CRI-O may answer. A host with Docker and k3s has two of them.
func (k Kind) sockets() (all []string) {
	if k.Address != "" {
		return []string{strings.TrimPrefix(k.Address, "unix://")}
	}
	for _, s := range usualSockets {
		if _, err := os.Stat(filepath.Join(k.Root, s)); err == nil {
			all = append(all, filepath.Join(k.Root, s))
		}
	}
	if len(all) == 0 {
		all = []string{filepath.Join(k.Root, usualSockets[0])}
	}
	return all
}

// running finds a container by the beginning of its id, and its first process, at the first of
// the sockets that has it. That there is none is said if all of them have answered so: one that is
// just started again has its containers all the same, and what weir has on record of them stays.
func (k Kind) running(ctx context.Context, namespace, id string) (at client, whole string, pid int, err error) {
	for _, socket := range k.sockets() {
		c := client{socket, namespace}
		found, failed := c.find(ctx, id)
		if failed == nil {
			pid, err = c.pid(ctx, found)
			return c, found, pid, err
		}
		if err == nil || errors.Is(err, errNone) {
			at, err = c, failed
		}
		var several *ambiguity
		if errors.As(failed, &several) {
			return c, "", 0, failed
		}
	}
	return at, "", 0, err
}

// Resolve finds the group of a running container.
func (k Kind) Resolve(ctx context.Context, name string) (targets.Target, error) {
	spec := "containerd:" + name
	namespace, id, ok := strings.Cut(name, "/")
	if !ok || !isIdentifier(namespace) || !isIdentifier(id) {
		return targets.Target{}, &targets.NameError{
			Err: fmt.Errorf("containerd %q: name a container by its namespace and id, such as containerd:k8s.io/3f2a9c1b5d7e, each of at most %d of a-z, A-Z, 0-9 and _ . - (ctr namespaces list, ctr -n NAMESPACE tasks list)", name, identifierMax)}
	}
	at, id, pid, err := k.running(ctx, namespace, id)
	if err != nil {
		return targets.Target{}, explain(spec, at.socket, err)
	}
	lasting := "containerd:" + namespace + "/" + id
	if pid <= 0 {
		return targets.Target{}, &targets.StoppedError{Target: spec, Why: "the container has no process, so it has no cgroup to limit", Lasting: lasting}
	}
	group, err := k.groupOf(spec, id, pid)
	if err != nil {
		return targets.Target{}, err
	}
	owner := targets.OwnerOf(group, k.SystemdRuns)
	owner.Kind, owner.Name = "containerd", namespace+"/"+id
	return targets.Target{Kind: "containerd", Name: name, Group: group, Owner: owner, Firsts: []int{pid}, Lasting: lasting}, nil
}

// groupOf finds the container's group: that of its first process, or one above. Everybody who
// makes containers with containerd names it after the container: ctr /NAMESPACE/ID, the CRI
// .../ID, .../cri-containerd-ID.scope or .../SLICE:cri-containerd:ID, nerdctl
// .../nerdctl-ID.scope. So does CRI-O: .../crio-ID.scope, .../crio-ID. A group with another name belongs to a process that got the same number
// later, or is shared with others.
func (k Kind) groupOf(spec, id string, pid int) (cgroupfs.Group, error) {
	group, err := k.FS.OfProcess(k.Hierarchy, pid)
	if cgroupfs.IsGone(err) {
		return group, fmt.Errorf("%s: its first process, %d, is not on this host: the container has just ended, or containerd runs elsewhere; try again", spec, pid)
	}
	if err != nil {
		return group, err
	}
	for above := group; !above.IsRoot(); above = above.Parent() {
		if targets.IsCalledAfter(above.Path(), id) {
			return above, nil
		}
	}
	return group, fmt.Errorf("%s: its first process, %d, is in cgroup %s, which is not named after the container and may contain others; if it is the container's own, name it: cgroup:%s",
		spec, pid, group.Path(), group.Path())
}

// IsGroupOf reports whether a group is named after a container and nothing else. Ids of ctr are
// words that other groups can have as names, but its groups are at a known place. All other ids
// are random.
func IsGroupOf(group, namespace, id string) bool {
	monitors := strings.HasSuffix(group, "-conmon-"+id+".scope") // CRI-O's, beside the container
	return targets.CalledAfter(group) == id && !monitors && (len(id) >= 64 || group == "/"+namespace+"/"+id)
}

// Namer returns a function that gives the name of a container's group in this kind, and "" for
// other groups.
func (k Kind) Namer(ctx context.Context) func(group string) string {
	in := map[string]string{} // the namespaces of containers
	for _, socket := range k.sockets() {
		namespaces, err := client{socket, ""}.namespaces(ctx)
		if err != nil {
			continue
		}
		for _, namespace := range namespaces {
			if !isIdentifier(namespace) || namespace == dockers {
				continue
			}
			ids, err := client{socket, namespace}.ids(ctx, "")
			if err != nil {
				continue
			}
			for _, id := range ids {
				in[id] = namespace
			}
		}
	}
	return func(group string) string {
		id := targets.CalledAfter(group)
		namespace := in[id]
		if namespace == "" || !IsGroupOf(group, namespace, id) {
			return ""
		}
		return "containerd:" + namespace + "/" + id
	}
}

// identifierMax bounds namespaces and ids (containerd's identifiers package).
const identifierMax = 76

// isIdentifier reports whether containerd accepts a namespace or an id of this spelling:
// letters and digits, with single _ . - between them.
func isIdentifier(text string) bool {
	for i, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || i == len(text)-1 || !strings.ContainsRune("_.-", r)) {
			return false
		}
	}
	return text != "" && len(text) <= identifierMax
}

// An ambiguity says that several ids begin with the given text.
type ambiguity struct{ ids []string }

func (e *ambiguity) Error() string {
	return "several ids begin like this: " + strings.Join(e.ids, ", ")
}

var errNone = errors.New("no such container")

// explain says for the user why a question failed.
func explain(spec, socket string, err error) error {
	var several *ambiguity
	switch {
	case errors.Is(err, errNone):
		return &targets.NotFound{Target: spec, Why: "no such container; ctr -n NAMESPACE containers list shows them"}
	case errors.As(err, &several):
		return fmt.Errorf("%s: %w", spec, err)
	case grpc.IsCode(err, grpc.Unimplemented):
		return &targets.NoKindError{Err: &fault.Unsupported{Feature: spec, Reason: "what answers at " + socket + " speaks neither containerd's API nor CRI version 1",
			Remedy: "name the socket of containerd or CRI-O with CONTAINERD_ADDRESS=/PATH"}}
	}
	return targets.Daemon{Title: "containerd", Socket: socket, Check: "ctr version",
		Remedy: "start containerd (systemctl start containerd), or name its socket with CONTAINERD_ADDRESS=/PATH"}.Explain(spec, err)
}

// Live names the running containers whose names begin with prefix, for completion: namespaces
// first.
func (k Kind) Live(ctx context.Context, prefix string) []string {
	namespace, id, chosen := strings.Cut(prefix, "/")
	var names []string
	for _, socket := range k.sockets() {
		if !chosen {
			all, err := client{socket, ""}.namespaces(ctx)
			if err != nil {
				continue
			}
			for _, n := range all {
				if isIdentifier(n) && strings.HasPrefix(n, namespace) {
					names = append(names, n+"/")
				}
			}
		} else if isIdentifier(namespace) {
			all, err := client{socket, namespace}.ids(ctx, id)
			if err != nil {
				continue
			}
			for _, one := range all {
				names = append(names, namespace+"/"+one)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names
}
