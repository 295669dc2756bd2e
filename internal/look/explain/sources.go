package explain

import (
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/targets"
)

// Sources are where package why reads the facts of a host, and of those who keep limits there.
func Sources(h *host.Host) (why.Sources, error) {
	s, err := h.WhySources()
	s.KeptIn = func(t targets.Target) (string, error) { return keep.In(h, t) }
	return s, err
}
