// Package source makes the sources of the agent: the targets of each kind, with their plans, and
// what tells that they have changed. The cgroup tree tells of all kinds; Docker and Podman tell of
// their containers themselves; Disks tells of targets that may have got a disk.
//
// An event says only which target to look at; weird always compares that target with the kernel's
// files. So an event too many costs a look, and an event too few is found by the comparison every
// five to forty minutes, which counts it. For an event weird asks the engine for that container alone, and
// reads that record alone.
//
// A newborn group is the exception: Births writes the rules of its plan at once, from what is known
// before the birth. The first look at many targets gives all their rules too, before the rest of what
// they need is done one by one, and so does each look at a new pod or container of one.
package source

import (
	"github.com/weir-io/weir/internal/base/haste"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/planned"
)

// Options say what the sources work on.
type Options struct {
	// Open opens the host. Each source opens it for itself, because a host serves one goroutine.
	Open  func() (*host.Host, error)
	Plans *Plans
	// Ended is told of a target that has ended, by its kind and its name or id.
	Ended func(kind, name string)
	// Live knows pods as they are now; nil: the container runtime's annotations count.
	Live planned.Live
	// Gate is closed while a container waits for its start, and looks wait then; nil: there is none.
	Gate *haste.Gate
	// Asked reports whether a container runtime asks weird before it starts the containers of pods: a new one is in no hurry to
	// be looked at then. nil: none does.
	Asked func() bool
	// Births is told of containers that were made; nil: nobody is.
	Births *Births
}

// isAsked reports whether weird is asked about a new container, or pod, before it starts.
func (o Options) isAsked(of named) bool {
	return o.Asked != nil && of.name != "" && (of.kind == "pod" || of.kind == "containerd") && o.Asked()
}
