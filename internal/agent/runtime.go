package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/weir-io/weir/internal/base/haste"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
)

const (
	// runtimeMost bounds the time until an agent that serves a container runtime says that it is ready.
	runtimeMost = 10 * time.Second
	// runtimeEvery is how often it looks meanwhile.
	runtimeEvery = 20 * time.Millisecond
)

// A Runtime is a container runtime that asks weir before it starts a container.
type Runtime interface {
	// Run serves it until the context ends.
	Run(ctx context.Context)
	// Status returns what is known now. It waits for nothing.
	Status() RuntimeStatus
	// Asks reports whether the runtime asks. It waits for nothing, and takes no time.
	Asks() bool
}

// RuntimeOptions say what a Runtime works on.
type RuntimeOptions struct {
	// Open opens the host. The Runtime opens it for itself, because a host serves one goroutine.
	Open func() (*host.Host, error)
	// Plans are the plans in force.
	Plans func() *plans.Config
	// Changed is told of a kind whose targets may have no limits yet: "pod" or "containerd".
	Changed func(kind string)
	// Ended is told of a target that has ended, by its kind and its name.
	Ended func(kind, name string)
	// Done is told of a target whose limits the Runtime has changed, as it was before. It does
	// not wait; nil: nobody is told.
	Done func(planned.Target)
	// Begun takes a target, by its kind and the name by which its source looks at it, whose rules are in force, while
	// the rest is still to be done. b is the birth of the rules; nil: they were in force before. It does not wait.
	Begun func(b *planned.Birth, kind, name string)
	// Gate is closed while a container waits for its start; nil: there is none.
	Gate *haste.Gate
	// Live knows pods as they are now; nil: nobody does.
	Live planned.Live
	Log  *slog.Logger
}

// A RuntimeStatus says how a Runtime is.
type RuntimeStatus struct {
	Runtime    string    // that asks, and its version; empty: it does not
	Since      time.Time // that is so
	Error      string    // why it does not ask; empty: it does, or was not found yet
	Reconnects uint64
	Starts     uint64        // of containers that it has asked about
	Limited    uint64        // of them: limits are in force, on the container or its pod, since before the start
	Late       uint64        // of them: weir took too long, and the container started without
	Failed     uint64        // of them: limits could not be set
	Refused    uint64        // pods and containers whose annotations are wrong
	P99        time.Duration // of the last answers about containers that have limits
}
