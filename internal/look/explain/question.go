// Package explain makes the questions of package why from what people name: a target, a path or a
// device, and limits. It finds the targets on a host; why gathers the facts and judges them.
package explain

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A Request is what somebody asks.
type Request struct {
	// Subject is a target, a path or a device. Of the latter two the question is what a command
	// that weir run starts there would get. Empty: it is that for this host.
	Subject string
	// Asked are limits that the question assumes, or places without any.
	Asked []limit.Asked
	Hold  limit.Hold // that holds buffered writes, if the question assumes limits; empty: limit.HoldAuto
	// Planned is that of why.Sources; nil: plans are not known.
	Planned func(targets.Target) []cgroupfs.Rule
}

// QuestionOf makes the question of a request. Its notes say which of a target's disks are left out.
func QuestionOf(ctx context.Context, h *host.Host, r Request) (why.Question, []note.Note, error) {
	if r.Subject == "" {
		return About(nil, r.Asked, r.Hold), nil, nil
	}
	t, err := subject(ctx, h, r.Subject)
	if err != nil {
		return why.Question{}, nil, err
	}
	places := r.Asked
	if len(places) == 0 {
		places = []limit.Asked{{}}
	}
	if t != nil {
		places, notes, err := place.OwnDisks(ctx, h.Devices(), places, *t)
		if err != nil {
			return why.Question{}, notes, err
		}
		return About(t, places, r.Hold), notes, nil
	}
	var there []limit.Asked
	for _, p := range places {
		if p.On != "" {
			return why.Question{}, nil, fault.With(fault.Misusef("why %s: %s names a place already", r.Subject, r.Subject), fault.Remedy{Do: fault.DropPlace, Target: p.On})
		}
		p.On = r.Subject
		there = append(there, p)
	}
	return About(nil, there, r.Hold), nil, nil
}

// About makes a question about places of a target, or of a group that weir would make. Limits, and
// what such a group gets, are supposed to be held as hold says.
func About(t *targets.Target, places []limit.Asked, hold limit.Hold) why.Question {
	q := why.Question{Target: t}
	supposed := t == nil
	for _, p := range places {
		q.Places = append(q.Places, place.Spot{Asked: p})
		supposed = supposed || !p.Limit.IsZero()
	}
	if supposed {
		q.Hold = cmp.Or(hold, limit.HoldAuto)
	}
	return q
}

// subject resolves a target; nil for a path or a device.
func subject(ctx context.Context, h *host.Host, spec string) (*targets.Target, error) {
	if strings.HasPrefix(spec, "/") || strings.HasPrefix(spec, ".") {
		return nil, nil
	}
	t, err := h.Target(ctx, spec)
	var unknown *targets.NotFound
	if errors.As(err, &unknown) && !isTarget(h, spec) {
		return nil, nil // a device's name, or nothing's: then resolving it says so
	}
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// isTarget reports whether a spec begins with a kind of target.
func isTarget(h *host.Host, spec string) bool {
	io, err := h.IO()
	if err != nil {
		return false
	}
	for _, k := range h.Kinds(io) {
		if strings.HasPrefix(spec, k.Name()+":") {
			return true
		}
	}
	return false
}
