package engine

import (
	"context"
	"strings"

	"github.com/weir-io/weir/internal/targets"
)

// List lists the running containers with their labels, in the engine's order. A container goes by
// its first name that is valid, or by the beginning of its id. With ids, or beginnings of them, it may
// list those alone, which takes less where there are many.
func (k Kind) List(ctx context.Context, ids ...string) ([]targets.Listed, error) {
	return k.list(ctx, false, ids)
}

// ListMade is List of containers that do not run, too.
func (k Kind) ListMade(ctx context.Context, ids ...string) ([]targets.Listed, error) {
	return k.list(ctx, true, ids)
}

func (k Kind) list(ctx context.Context, stopped bool, ids []string) ([]targets.Listed, error) {
	socket, err := k.socket("")
	if err != nil {
		return nil, err
	}
	containers, err := daemon{socket}.list(ctx, stopped, ids)
	if err != nil {
		return nil, k.Maker.explain(k.Name(), socket, err)
	}
	return k.named(containers), nil
}

// named are those of an engine's containers that have a valid id, by names that can be typed.
func (k Kind) named(containers []listed) (all []targets.Listed) {
	for _, c := range containers {
		if !targets.IsContainerID(c.ID) {
			continue
		}
		one := targets.Listed{Kind: k.Name(), Name: c.ID[:12], ID: c.ID, Labels: c.Labels}
		for _, name := range c.Names {
			if name, ok := strings.CutPrefix(name, "/"); ok && isName(name) { // (others are links')
				one.Names = append(one.Names, name)
			}
		}
		if len(one.Names) == 0 {
			one.Names = []string{one.Name}
		}
		one.Name = one.Names[0]
		all = append(all, one)
	}
	return all
}
