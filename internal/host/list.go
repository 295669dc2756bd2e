package host

import (
	"context"
	"errors"

	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/targets/engine"
)

// List lists the running targets of a kind, with those of their labels and annotations that are needed, or more. A kind that this host does not
// have has none: its daemon is not there, or nothing answers at its socket. With ids, or beginnings of
// them, an engine may list those of its containers alone.
func (h *Host) List(ctx context.Context, kind string, need targets.Need, ids ...string) ([]targets.Listed, error) {
	all, err := h.list(ctx, kind, need, ids)
	var none *targets.NoKindError
	if errors.As(err, &none) {
		return nil, nil
	}
	return all, err
}

func (h *Host) list(ctx context.Context, kind string, need targets.Need, ids []string) ([]targets.Listed, error) {
	switch kind {
	case "unit":
		return h.listUnits(ctx)
	case "containerd":
		k := h.Containerd(nil)
		k.Need = need
		return k.List(ctx, ids...)
	case "pod":
		k := h.Pods(nil)
		k.Need = need
		return k.List(ctx, ids...)
	case "vm":
		return named(kind, h.Machines(nil).Live("")), nil
	}
	for _, m := range engine.Makers() {
		if m.Kind() == kind {
			return h.Containers(m, nil).List(ctx, ids...)
		}
	}
	return nil, nil
}

func (h *Host) listUnits(ctx context.Context) ([]targets.Listed, error) {
	if !h.IsOwn() || !h.SystemdRuns() {
		return nil, nil
	}
	conn, err := h.Systemd(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	names, err := conn.LiveUnits(ctx, "")
	return named("unit", names), err
}

func named(kind string, names []string) (all []targets.Listed) {
	for _, name := range names {
		all = append(all, targets.Listed{Kind: kind, Name: name, Names: []string{name}})
	}
	return all
}
