package explain

import (
	"context"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/targets"
)

// Sources are where package why reads the facts of a host, and of those who keep limits there.
func Sources(h *host.Host) (why.Sources, error) {
	s, err := h.WhySources()
	s.Kept = func(ctx context.Context, t targets.Target) (why.Kept, error) { return keep.By(ctx, h, t) }
	return s, err
}

// Facts are those of a host that a request is about. The notes tell what the request leaves open.
func Facts(ctx context.Context, h *host.Host, r Request) (why.Facts, []note.Note, error) {
	q, notes, err := QuestionOf(ctx, h, r)
	if err != nil {
		return why.Facts{}, notes, err
	}
	sources, err := Sources(h)
	if err != nil {
		return why.Facts{}, notes, err
	}
	sources.Planned = r.Planned
	facts, err := why.Gather(ctx, sources, q)
	return facts, notes, err
}
