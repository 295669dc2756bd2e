// Package annotations reads what a Kubernetes pod asks for by its annotations:
//
//	weir.io/plan: small                  the pod's plan
//	weir.io/plan.CONTAINER: small        one container's plan
//	weir.io/read: 20Mi                   bytes read each second, on every disk that the pod has mounted
//	weir.io/write: 10Mi                  bytes written
//	weir.io/read-iops: 500               operations
//	weir.io/write-iops: 1k
//	weir.io/write.CONTAINER: 5Mi         of one container; so for the other three
//	weir.io/on.VOLUME: write=5Mi         on the disk of one volume, or of "rootfs"
//	weir.io/on.NAME: path=/data read=1Mi on the disk of what containers have mounted there
//
// It is pure: it gets the annotations, which nobody has checked, and opens nothing. All of them are
// taken, or none.
package annotations

import (
	"fmt"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// Prefix begins the name of every annotation that weir reads.
const Prefix = "weir.io/"

// Status is an annotation that weir writes, and does not read.
const Status = Prefix + "status"

// Rootfs stands for the file system that a container's root is on, where else a volume is named.
const Rootfs = "rootfs"

// The bounds of what is read. Kubernetes allows 256 KiB of annotations, and 63 bytes of a name after
// the prefix (apimachinery, api/validation and util/validation).
const (
	manyMost  = 256 // weir's own annotations
	valueMost = 4096
	nameMost  = 63 // bytes of a plan's or a container's name
	shownMost = 100
)

// A Pod is what a pod's annotations ask.
type Pod struct {
	Part
	On []On
	// Containers are what is asked of single containers, by their names.
	Containers map[string]Part
}

// A Part is what is asked of a pod, or of one container.
type Part struct {
	Plan  string      // empty: none is named
	Limit limit.Limit // on every disk; each rate is a number or unset
}

// IsZero reports whether nothing is asked.
func (p Part) IsZero() bool { return p == Part{} }

// IsZero reports whether nothing is asked of the pod as a whole.
func (p Pod) IsZero() bool { return p.Part.IsZero() && len(p.On) == 0 }

// An On is a limit on the disk of one volume.
type On struct {
	Volume string // its name, or Rootfs
	// Path is where containers have it mounted; empty: it is known by its name.
	Path  string
	Limit limit.Limit // each rate is a number or unset
}

// shown is a text of others in a message: in quotes if it is empty or has odd characters, and not endless.
func shown(text string) string {
	if text == "" {
		return `""`
	}
	return plain.Short(text, shownMost)
}

// A Refusal says what is wrong with an annotation.
type Refusal struct{ Key, Reason string }

func (e *Refusal) Error() string {
	return fmt.Sprintf("annotation %s: %s", shown(e.Key), e.Reason)
}

// Class makes it fault.WrongUse.
func (e *Refusal) Class() fault.Class { return fault.WrongUse }
