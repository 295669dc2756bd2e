// Package tree follows a tree of directories, such as a cgroup hierarchy, by inotify(7): which
// groups are born, which end, and whose files somebody writes. It is the same for cgroup v1 and v2.
//
// Each group has one watch, on its directory. The kernel tells of a new group through the watch of
// the group above; Tree then watches the new group first, and lists it after that. So a group that
// is made before the watch is in the list, one that is made later is an event, and none is lost in
// between.
//
// The kernel drops events when nobody reads them for too long (IN_Q_OVERFLOW). Tree then compares
// all that it knows with what is there, reports the difference, and counts it. It cannot tell which files
// were written meanwhile, so it reports that some may have been. So does each comparison while groups have no watch.
//
// Tree opens each directory once, and watches and lists that descriptor, so a name that is taken by
// another group in between does no harm. Before Linux 7.0 the kernel leaves a watch behind when a
// cgroup is removed, so Tree removes it.
package tree

// A Kind says what happened to a group.
type Kind int

// What can happen.
const (
	Born    Kind = iota // the group is there
	Ended               // the group is gone
	Written             // somebody wrote one of its files; of Options.Files only
	Lost                // events were lost, or some groups have no watch: any group's files may have been written
)

func (k Kind) String() string { return [...]string{"born", "ended", "written", "lost"}[k] }

// An Event is one change. A group that is removed and made anew ends and is born, with both events
// in this order. The same can be reported of a group that only seemed to be another one.
type Event struct {
	Kind Kind
	Path string // of the group, below the root: "system.slice/x.service"; the root itself, and that of Lost, is "."
	File string // of Written: which one
	// Found says that a comparison found the change and no event told of it (yet).
	Found bool
}

// Options bound what a Tree follows. Zero values are the defaults.
type Options struct {
	// Files are the names of the files whose writes are reported.
	Files []string
	// Each is called before each look at a group; nil: nothing is. With thousands of groups these take most of the time.
	Each func()
	// GroupsMax bounds how many groups are followed. The default is 100,000.
	GroupsMax int
	// DepthMax bounds how deep below the root a group may be. The default is 64.
	DepthMax int
}

// Stats are counters of a Tree.
type Stats struct {
	Groups    int    // that are known, without the root
	Unwatched int    // groups without a watch, at the last look: groups below them are found late
	Left      uint64 // how often a group was left out: too many, too deep, or not readable
	Overflows uint64 // how often the kernel dropped events
	Missed    uint64 // changes that only a comparison found
}
