package source

import (
	"maps"

	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

const (
	// knownMost bounds the containers of a kind whose names and labels are remembered, and knownBytes these
	// names and labels, of all kinds. Of a container that does not fit the rules come once it runs.
	knownMost  = 20_000
	knownBytes = 16 << 20
	// listedBytes bounds them for one container, so that no user can take the place of the others. Of one that has more the
	// labels are remembered by which the plans go.
	listedBytes = 64 << 10
)

// A learnt container is what is remembered of one.
type learnt struct {
	targets.Listed
	by *plans.Config // whose labels it has; nil: it has all
}

// known are containers of each kind, by their ids. The zero known has none.
type known struct {
	kinds map[string]map[string]learnt
	bytes int
}

// of is what is known of a container for plans: of a large one, only what the plans go by that were in force.
func (k *known) of(kind, id string, config *plans.Config) (l targets.Listed, is bool) {
	one, is := k.kinds[kind][id]
	return one.Listed, is && (one.by == nil || one.by == config)
}

// learn replaces what is known of a container, while plans are in force.
func (k *known) learn(kind string, l targets.Listed, config *plans.Config) {
	k.forget(kind, l.ID)
	one := learnt{Listed: l}
	size := sizeOf(l)
	if size > listedBytes {
		isNeeded := planned.NeedOf(config).Label
		one.by, one.Labels = config, maps.Clone(l.Labels)
		maps.DeleteFunc(one.Labels, func(name, _ string) bool { return !isNeeded(name) })
		size = sizeOf(one.Listed)
	}
	if len(k.kinds[kind]) >= knownMost || size > listedBytes || k.bytes+size > knownBytes {
		return
	}
	if k.kinds == nil {
		k.kinds = map[string]map[string]learnt{}
	}
	if k.kinds[kind] == nil {
		k.kinds[kind] = map[string]learnt{}
	}
	k.kinds[kind][l.ID] = one
	k.bytes += size
}

func (k *known) forget(kind, id string) {
	if one, is := k.kinds[kind][id]; is {
		k.bytes -= sizeOf(one.Listed)
		delete(k.kinds[kind], id)
	}
}

func (k *known) forgetAll(kind string) {
	for id := range k.kinds[kind] {
		k.forget(kind, id)
	}
}

// sizeOf is how many bytes the texts of a container have.
func sizeOf(l targets.Listed) int {
	size := len(l.Name) + len(l.ID) + len(l.Namespace) + len(l.UID)
	for _, name := range l.Names {
		size += len(name)
	}
	for _, all := range []map[string]string{l.Labels, l.Annotations} {
		for name, value := range all {
			size += len(name) + len(value)
		}
	}
	return size
}
