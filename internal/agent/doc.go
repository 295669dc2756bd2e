// Package agent keeps plans in force for as long as it runs: it loads them, has sources tell what
// has changed, and loads the plans again when their files change. A front end gives it a log and
// asks it for its status.
//
// It fails static: when it ends, however that happens, limits and the pacer stay as they are.
//
// It has three parts. Package tree, the engines' events and the list of mounts say that something changed. Package
// source finds what a target has and is to have, by package planned, and puts it into force.
// Package reconcile decides whether that is due: new, another plan, drift, a retry, or a fight that
// weir gives up.
//
// The plans are exchanged whole; a mistake leaves the former ones in force.
package agent

import (
	"log/slog"
	"time"

	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/plans"
)

// Options say what an Agent works on.
type Options struct {
	// Open opens the host; it is called once for each source.
	Open func() (*host.Host, error)
	// Root is below which the usual directory of plans is looked for.
	Root string
	// Plans is the file or directory of the plans; empty: the usual directory.
	Plans string
	// Read reads them: planfile.Read. It is given, because whoever knows this package would else
	// link YAML.
	Read plans.Reader
	// Runtime makes the container runtime that is served; nil: none is. With one the annotations of
	// pods count.
	Runtime func(RuntimeOptions) Runtime
	// Cluster makes what knows pods as they are now; nil: their annotations are those of the runtime.
	Cluster func(ClusterOptions) Cluster
	Log     *slog.Logger
	// Journal keeps what is changed; nil: nobody does.
	Journal *journal.Journal
	Version string // of weird, for the journal
}

// Counts are what an Agent has counted since it began.
type Counts = reconcile.Counts

// A Status is what an Agent knows.
type Status struct {
	Files       []string  // of the plans in force
	Loaded      time.Time // when they were loaded
	PlansError  string    // why newer ones were not taken; empty: there are none
	Targets     []reconcile.Status
	Held        map[string]Held // whether the limits of targets are held, by their keys
	Counts      Counts
	Sources     []reconcile.Following
	Hierarchies map[string]tree.Stats // that are followed, by mount point
	TreeError   string                // why they are not followed; empty: they are
	Runtime     *RuntimeStatus        // nil: no container runtime is served
}
