package kube

import "encoding/json"

// An object is what is read of an object of any kind. The fields are those of Kubernetes' API; only some
// kinds have each.
type object struct {
	Metadata meta
	Spec     spec
	Status   struct {
		Phase              string            // of a pod
		AttachmentMetadata map[string]string // of a VolumeAttachment: what its driver publishes to the node
	}
	// Of a VolumeAttributesClass:
	DriverName string
	Parameters map[string]string
}

// A meta is what is read of an object's metadata (ObjectMeta).
type meta struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	UID             string            `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Annotations     map[string]string `json:"annotations"`
	// DeletionTimestamp is when it was asked to go; empty: nobody did.
	DeletionTimestamp string `json:"deletionTimestamp"`
}

// A spec is what is read of an object's spec.
type spec struct {
	Volumes []struct { // of a pod
		Name                  string
		PersistentVolumeClaim *struct{ ClaimName string }
		Ephemeral             *json.RawMessage // there is a claim that is named after the pod and the volume
	}
	VolumeName string    // of a PersistentVolumeClaim: its PersistentVolume; empty: it has none yet
	CSI        *struct { // of a PersistentVolume; nil: no CSI driver has it
		Driver           string
		VolumeHandle     string
		VolumeAttributes map[string]string
	}
	VolumeAttributesClassName string // of a PersistentVolume: that its driver has put into force
	Attacher, NodeName        string // of a VolumeAttachment: the driver, and the node
}

// isOver reports whether a pod has ended for good (PodPhase). It is in the cluster until somebody removes it.
func (o object) isOver() bool { return o.Status.Phase == "Succeeded" || o.Status.Phase == "Failed" }

// isWhole reports whether an object can be told from others.
func (m meta) isWhole() bool {
	return m.Name != "" && m.UID != "" && len(m.Name) <= nameMost && len(m.Namespace) <= nameMost && len(m.UID) <= nameMost
}
