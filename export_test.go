package weir

import (
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/look/explain"
	"github.com/weir-io/weir/internal/look/prove"
)

// Inner is what a host is made of.
func Inner(h *Host) *host.Host { return h.host }

// StandIn has a host that is a copy take changes, as its kernel would.
func StandIn(h *Host) (*hosttest.Kernel, error) { return hosttest.StandIn(h.host) }

// RunHelperOf is RunHelper without the end of the process.
func RunHelperOf(args ...string) (is bool, status int) { return runHelper(args) }

// Spelled are the things to do that have words.
func Spelled() map[string]string {
	words := map[string]string{}
	for do, text := range remedies() {
		words[string(do)] = text
	}
	return words
}

// ProofOf is a measurement in this package's form.
func ProofOf(measured prove.Proof) (p Proof) {
	p.measured(measured)
	return p
}

// LimitedOf and StepsOf are what the core shows and would do, in this package's form.
func LimitedOf(g limiting.Group) Limited { return limitedOf(g) }
func StepsOf(steps []hold.Step) []Step   { return stepsOf(steps) }

// RequestOf is what a proof asks of the core.
func RequestOf(r ProveRequest) (prove.Request, error) { return r.inner() }

// QuestionOf is what Why asks of the core.
func QuestionOf(r WhyRequest, subject string) (explain.Request, error) { return r.inner(subject) }
