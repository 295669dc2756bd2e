package planned

import (
	"github.com/weir-io/weir/internal/annotations"
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
}

// Now returns a pod with its annotations as they are now.
func (m Manager) Now(l targets.Listed) targets.Listed {
	if m.Live == nil || l.Kind != "pod" {
		return l
	}
	if all, _, is := m.Live.Of(l.UID, l.Namespace); is {
		l.Annotations = all
	}
	return l
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
