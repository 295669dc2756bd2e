package planned

import (
	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// Live knows pods as they are now. A container runtime knows the annotations that a pod had when it
// was made.
type Live interface {
	// Of returns the annotations of a pod with a UID, and the plan that its namespace names; empty: it
	// names none. is reports whether the annotations are known: otherwise those of the runtime count.
	Of(uid, namespace string) (all map[string]string, plan string, is bool)
	// Volumes returns the limits that CSI drivers keep with a pod's persistent volumes, by the names of the
	// PersistentVolumes.
	Volumes(uid, namespace string) []annotations.On
	// Read reports whether all has been read that Of tells of a pod, or will ever tell, and all that Volumes does. Until
	// then nothing of what the pod has had is taken away or raised.
	Read(uid string) (of, volumes bool)
}

// The label that kubelet gives to containers beside podUIDLabel.
const podNamespaceLabel = "io.kubernetes.pod.namespace"

// podOf is the pod that a target is, or that it is in; false: it is in none.
func podOf(l targets.Listed) (uid, namespace string, is bool) {
	switch l.Kind {
	case "pod":
		return l.UID, l.Namespace, true
	case "containerd":
		return l.Labels[podUIDLabel], l.Labels[podNamespaceLabel], l.Labels[podUIDLabel] != ""
	}
	return "", "", false
}

// Now returns a pod, or a container in one, with the pod's annotations as they are now.
func (m Manager) Now(l targets.Listed) targets.Listed {
	if m.Live == nil {
		return l
	}
	if uid, namespace, is := podOf(l); is {
		if all, _, is := m.Live.Of(uid, namespace); is {
			l.Annotations = all
		}
	}
	return l
}

// unread is what has not been read yet of what a target may ask for. A container can run on without what holds its pod, and
// its runtime does not list the pod then.
func (m Manager) unread(l targets.Listed) plans.Unread {
	uid, _, is := podOf(l)
	if !is {
		return plans.Unread{}
	}
	u := plans.Unread{Own: l.Kind == "containerd" && m.Now(l).Annotations == nil}
	if m.Live != nil {
		of, volumes := m.Live.Read(uid)
		u.Own, u.Volumes = u.Own || !of, !volumes && l.Kind == "pod"
	}
	return u
}

// ofSpace is the plan that a pod's namespace names; nil: it names none.
func (m Manager) ofSpace(l targets.Listed) *string {
	if m.Live == nil || l.Kind != "pod" {
		return nil
	}
	if _, plan, _ := m.Live.Of(l.UID, l.Namespace); plan != "" {
		return &plan
	}
	return nil
}

// volumesOf are the limits of a pod's persistent volumes.
func (m Manager) volumesOf(l targets.Listed) []annotations.On {
	if m.Live == nil || l.Kind != "pod" {
		return nil
	}
	return m.Live.Volumes(l.UID, l.Namespace)
}
