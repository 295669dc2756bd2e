package pod

import (
	"context"

	"github.com/weir-io/weir/internal/targets"
)

// List lists the pods that are ready, with their labels and annotations. With one UID it lists that pod, or others too.
func (k Kind) List(ctx context.Context, uids ...string) ([]targets.Listed, error) {
	var labels map[string]string
	if len(uids) == 1 {
		labels = map[string]string{uidLabel: uids[0]}
	}
	r, found, err := k.find(ctx, labels, func(s sandbox) bool { return isName(s.namespace) && isName(s.name) })
	if err != nil {
		return nil, explain(k.Name(), r.socket, err)
	}
	var all []targets.Listed
	for _, s := range found {
		all = append(all, targets.Listed{Kind: k.Name(), Name: s.namespace + "/" + s.name, Names: []string{s.name}, Namespace: s.namespace, UID: s.uid,
			Labels: s.labels, Annotations: s.annotations})
	}
	return all, nil
}
