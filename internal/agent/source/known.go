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
	// labels are remembered by which the plans go. Of one that does not fit it is known alone that it is there.
	listedBytes = 64 << 10
)

// A learnt container is what is remembered of one.
type learnt struct {
	targets.Listed
	names map[string]bool // of the labels that are remembered, if it has them; nil: all are
}

// isEnough reports whether all is remembered that plans go by.
func (l *learnt) isEnough(labels map[string]bool) bool {
	if l.names == nil {
		return true
	}
	for name := range labels {
		if !l.names[name] {
			return false
		}
	}
	return true
}

// known are containers of each kind, by their ids. The zero known has none.
type known struct {
	kinds map[string]map[string]learnt
	bytes int

	config *plans.Config
	labels map[string]bool // by which config goes
}

// labelsOf are the labels by which plans go. Containers that were learnt by the same ones share them.
func (k *known) labelsOf(config *plans.Config) map[string]bool {
	if k.config != config {
		k.config = config
		if labels := planned.LabelsOf(config); !maps.Equal(labels, k.labels) {
			k.labels = labels
		}
	}
	return k.labels
}

// of is what is known of a container for plans; ok: it is all that they go by. is reports whether the container is known at
// all.
func (k *known) of(kind, id string, config *plans.Config) (l targets.Listed, ok, is bool) {
	one, is := k.kinds[kind][id]
	return one.Listed, is && one.isEnough(k.labelsOf(config)), is
}

// learn replaces what is known of a container, while plans are in force.
func (k *known) learn(kind string, l targets.Listed, config *plans.Config) {
	k.forget(kind, l.ID)
	one := learnt{Listed: l}
	size := sizeOf(l)
	if size > listedBytes {
		one.names, one.Labels = k.labelsOf(config), maps.Clone(l.Labels)
		maps.DeleteFunc(one.Labels, func(name, _ string) bool { return !one.names[name] })
		size = sizeOf(one.Listed)
	}
	if size > listedBytes || k.bytes+size > knownBytes {
		one = learnt{Listed: targets.Listed{Kind: l.Kind, ID: l.ID}, names: map[string]bool{}}
		size = sizeOf(one.Listed)
	}
	if len(k.kinds[kind]) >= knownMost || k.bytes+size > knownBytes {
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
