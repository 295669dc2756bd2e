package second

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/look/explain"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/space"
)

// A Request is what somebody wants.
type Request struct {
	// Do is "set", "clear", "restore", "show", "why", "prove", "quota set", "quota show" or
	// "quota clear".
	Do string
	// Of is a target or, of a quota, a directory. Empty: all there are, or this host.
	Of      string
	Asked   []limit.Asked // limits, or places without any
	Hold    limit.Hold
	Whole   bool // also other processes of the group
	Persist bool
	Dry     bool // nothing is done: the document has the steps

	Paths  []load.Path   // of prove
	Window time.Duration // of prove, for each row
	Size   uint64        // of "quota set", in bytes
}

// Do does what a request wants, and returns the document of what was done.
func Do(ctx context.Context, h *host.Host, r Request) (document any, err error) {
	m := limiting.Manager{Host: h}
	switch r.Do {
	case "set":
		change, err := m.PrepareSet(ctx, limiting.Request{Target: r.Of, Asked: r.Asked, Hold: r.Hold, Whole: r.Whole, Persist: r.Persist})
		return changed(ctx, r, change, err)
	case "clear":
		change, err := m.PrepareClear(ctx, r.Of, r.places(), r.Whole)
		return changed(ctx, r, change, err)
	case "restore":
		return restored(ctx, m, r)
	case "show":
		return shown(ctx, m, r)
	case "why":
		return explained(ctx, h, r)
	case "prove":
		return proved(ctx, h, r)
	}
	return ofQuota(ctx, space.Quotas{Host: h}, r)
}

// places are those that were named.
func (r Request) places() (places []string) {
	for _, a := range r.Asked {
		places = append(places, a.On)
	}
	return places
}

// changed makes a prepared change, or lists its steps.
func changed(ctx context.Context, r Request, change limiting.Change, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if r.Dry {
		preview, err := change.Steps(ctx)
		return api.DryRunOf(r.Do, preview.Steps), err
	}
	result, err := change.Apply(ctx)
	if err != nil {
		return nil, err
	}
	return api.SetOf(r.Do, result)
}

func restored(ctx context.Context, m limiting.Manager, r Request) (any, error) {
	var targets []string
	if r.Of != "" {
		targets = []string{r.Of}
	}
	all, err := m.Restore(ctx, limiting.Restore{Targets: targets, Dry: r.Dry})
	if !r.Dry {
		return api.RestoreOf(all), err
	}
	doc := api.DryRunOf(r.Do, nil)
	for _, one := range all {
		doc.Steps = append(doc.Steps, one.Steps()...)
	}
	return doc, err
}

// shown shows limits without measuring: two front ends would measure at different times.
func shown(ctx context.Context, m limiting.Manager, r Request) (any, error) {
	if r.Of == "" {
		all, err := m.ShowAll(ctx, 0)
		return api.ShowOf(all), err
	}
	one, err := m.Show(ctx, r.Of, 0)
	if err == nil {
		one.Groups[0].Space = space.Quotas{Host: m.Host}.OfTarget(ctx, *one.Target)
	}
	return api.ShowOf(one), err
}

func explained(ctx context.Context, h *host.Host, r Request) (any, error) {
	facts, _, err := explain.Facts(ctx, h, explain.Request{Subject: r.Of, Asked: r.Asked, Hold: r.Hold})
	if err != nil {
		return nil, err
	}
	return api.WhyOf(why.Judge(facts), nil), nil
}

func ofQuota(ctx context.Context, q space.Quotas, r Request) (any, error) {
	quiet := func(string, int, int) {}
	switch r.Do {
	case "quota set":
		set, err := q.Set(ctx, space.QuotaRequest{Place: r.Of, Change: quota.Change{Bytes: &r.Size}}, quiet)
		return api.QuotaSetOf(set.Status, set.Marked), err
	case "quota show":
		all, err := q.Of(ctx, r.Of)
		return api.QuotaOf(all...), err
	case "quota clear":
		was, _, err := q.Clear(ctx, r.Of, quiet)
		return api.QuotaOf(was), err
	}
	return nil, fmt.Errorf("%q is nothing that can be done here", r.Do)
}
