package source

import "github.com/weir-io/weir/internal/targets"

const (
	// knownMost bounds the containers of a kind whose names and labels are remembered, and knownBytes these
	// names and labels, of all kinds. Of a container that does not fit the rules come once it runs.
	knownMost  = 20_000
	knownBytes = 16 << 20
	// listedBytes bounds them for one container, so that no user can take the place of the others.
	listedBytes = 64 << 10
)

// known are containers of each kind, by their ids. The zero known has none.
type known struct {
	kinds map[string]map[string]targets.Listed
	bytes int
}

func (k *known) of(kind, id string) (l targets.Listed, is bool) {
	l, is = k.kinds[kind][id]
	return l, is
}

// learn replaces what is known of a container.
func (k *known) learn(kind string, l targets.Listed) {
	k.forget(kind, l.ID)
	size := sizeOf(l)
	if len(k.kinds[kind]) >= knownMost || size > listedBytes || k.bytes+size > knownBytes {
		return
	}
	if k.kinds == nil {
		k.kinds = map[string]map[string]targets.Listed{}
	}
	if k.kinds[kind] == nil {
		k.kinds[kind] = map[string]targets.Listed{}
	}
	k.kinds[kind][l.ID] = l
	k.bytes += size
}

func (k *known) forget(kind, id string) {
	if l, is := k.kinds[kind][id]; is {
		k.bytes -= sizeOf(l)
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
