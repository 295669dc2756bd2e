package targets

// A Listed is a running target as its owner lists it, with what a plan can go by. Nobody has
// checked its labels.
type Listed struct {
	Kind      string
	Name      string   // by which it resolves within its kind
	Names     []string // all that it has; a container can have several
	ID        string   // of a container; empty: it has none
	Namespace string   // of a pod
	UID       string   // of a pod
	// Labels are those of a container or a pod; Annotations those of a pod, or of the pod that a
	// container is in.
	Labels, Annotations map[string]string
	// Unread is why its labels are not known; nil: they are. What it is to have cannot be told, so nothing of it is
	// changed.
	Unread *UnreadError
}

// A Need says which labels and which annotations of targets are needed, by their names. The others are passed over, of
// whatever size they are. A nil function: all are needed.
type Need struct{ Label, Annotation func(name string) bool }

// An UnreadError says that its owner does not tell what weir needs to know of a target. It speaks of that target alone.
type UnreadError struct{ Target, Why string }

func (e *UnreadError) Error() string {
	return e.Target + ": weir cannot tell its plan, and leaves its limits as they are: " + e.Why
}

// An InPod is a container of a Kubernetes pod, by the names that users know.
type InPod struct{ Namespace, Pod, Container string }

// String spells the target as a user would.
func (l Listed) String() string { return l.Kind + ":" + l.Name }
