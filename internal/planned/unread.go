package planned

import (
	"errors"

	"github.com/weir-io/weir/internal/targets"
)

// readable are the targets of a list without those of which their owner does not tell enough, which unread names. Their
// limits stay as they are, and their records are not among those that are left.
func readable(listed []targets.Listed, left map[string]*record) (all []targets.Listed, unread error) {
	for _, l := range listed {
		if l.Unread == nil {
			all = append(all, l)
			continue
		}
		delete(left, keyOf(l))
		unread = errors.Join(unread, l.Unread)
	}
	return all, unread
}
