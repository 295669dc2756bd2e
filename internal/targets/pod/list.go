package pod

import (
	"context"
	"fmt"

	"github.com/weir-io/weir/internal/daemon/cri"
	"github.com/weir-io/weir/internal/targets"
)

// List lists the pods that are ready, with those of their labels and annotations that are needed. With one UID it lists that
// pod, or others too.
func (k Kind) List(ctx context.Context, uids ...string) ([]targets.Listed, error) {
	var labels map[string]string
	if len(uids) == 1 {
		labels = map[string]string{uidLabel: uids[0]}
	}
	r, found, err := k.find(ctx, labels, k.Need, func(s sandbox) bool { return isName(s.namespace) && isName(s.name) })
	if err != nil {
		return nil, explain(k.Name(), r.socket, err)
	}
	var all []targets.Listed
	for _, s := range found {
		one := targets.Listed{Kind: k.Name(), Name: s.namespace + "/" + s.name, Names: []string{s.name}, Namespace: s.namespace, UID: s.uid,
			Labels: s.labels, Annotations: s.annotations}
		if s.isCut {
			one.Labels, one.Annotations = nil, nil
			one.Unread = &targets.UnreadError{Target: one.String(), Why: fmt.Sprintf("the labels and annotations that its plan can depend on have more than %d MiB", cri.ThingMost>>20)}
		}
		all = append(all, one)
	}
	return all, nil
}
