package second

import (
	"context"
	"errors"
	"os"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/prove"
)

// proved measures a target in the directories that are named. The document has no command that
// explains its findings: that is how the command line spells it.
func proved(ctx context.Context, h *host.Host, r Request) (_ any, err error) {
	t, err := h.Target(ctx, r.Of)
	if err != nil {
		return nil, err
	}
	trial, err := prove.Prepare(ctx, h, prove.Request{Target: &t, Dirs: r.places(), Paths: r.Paths, Window: r.Window, All: true})
	defer func() { err = errors.Join(err, trial.Close()) }()
	if err != nil {
		return nil, err
	}
	proof, err := trial.Measure(ctx, prove.Prover{Load: []string{"/proc/self/exe", load.Arg}, Stderr: os.Stderr, Progress: func(string, float64) {}})
	return api.ProofOf(proof, ""), err
}
