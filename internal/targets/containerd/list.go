package containerd

import (
	"context"
	"slices"

	"github.com/weir-io/weir/internal/targets"
)

// dockers is the namespace of Docker's own containers, which are docker:NAME.
const dockers = "moby"

// asked is the question for containers with whole ids; with others among them, or many, it asks for all.
func asked(ids []string) (q question) {
	if len(ids) > filterMost || slices.ContainsFunc(ids, func(id string) bool { return !targets.IsContainerID(id) }) {
		return q
	}
	q.ids = ids
	return q
}

// List lists the containers of all namespaces with those of their labels that are needed, also of those that do not run,
// but not Docker's. With whole ids of containers it lists these, or others too. One whose labels cannot be read keeps no
// other from it.
func (k Kind) List(ctx context.Context, ids ...string) ([]targets.Listed, error) {
	var all []targets.Listed
	var first error
	answered := false
	for _, socket := range k.sockets() {
		q := asked(ids)
		q.need = k.Need
		some, err := k.list(ctx, socket, q)
		if err == nil {
			all, answered = append(all, some...), true
		} else if first == nil {
			first = explain(k.Name(), socket, err)
		}
	}
	if answered {
		return all, nil
	}
	return nil, first
}

// list is List for one containerd.
func (k Kind) list(ctx context.Context, socket string, q question) (all []targets.Listed, err error) {
	namespaces, err := client{socket, ""}.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		if !isIdentifier(namespace) || namespace == dockers {
			continue
		}
		err := client{socket, namespace}.list(ctx, q, func(c made) error {
			name := namespace + "/" + c.id
			one := targets.Listed{Kind: k.Name(), Name: name, Names: []string{name}, ID: c.id, Labels: c.labels}
			if c.unknown != "" {
				one.Labels, one.Unread = nil, &targets.UnreadError{Target: one.String(), Why: c.unknown}
			}
			all = append(all, one)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
