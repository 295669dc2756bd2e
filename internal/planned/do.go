package planned

import (
	"context"
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// Do does what a verb of weir plan says: "show" of one target, "diff" or "apply" of all.
func (m Manager) Do(ctx context.Context, verb, spec string, dry bool) (Report, error) {
	switch verb {
	case "show":
		return m.Show(ctx, spec)
	case "diff":
		return m.Diff(ctx)
	}
	return m.Apply(ctx, dry)
}

// Ask is what a plan asks for a target; without a target, for a command that weir starts. An empty
// path is the usual place of the plans.
func Ask(ctx context.Context, h *host.Host, path, name, spec string) ([]limit.Asked, error) {
	config, err := Load(h.Root, path, ByHelper(h.Helpers))
	if err != nil {
		return nil, err
	}
	m := Manager{Host: h, Config: config}
	if spec == "" {
		return m.AskedHere(ctx, name)
	}
	return m.Asked(ctx, spec, name)
}

// Mark notes the plans of groups that are shown. What keeps it from that is in the notes.
func Mark(ctx context.Context, h *host.Host, read plans.Reader, shown *limiting.Shown) []note.Note {
	config, err := Load(h.Root, "", read)
	if err != nil {
		return []note.Note{note.Warningf("no-plans", "weir cannot tell which target has which plan: %v", err)}
	}
	m := Manager{Host: h, Config: config}
	var notes []note.Note
	lists := map[string][]targets.Listed{}
	for _, kind := range kinds {
		if !config.Needs(kind) {
			continue
		}
		if lists[kind], err = m.list(ctx, kind); err != nil {
			notes = append(notes, note.Warningf("no-plans", "weir cannot tell which plan a target of the kind %s has: %v", kind, err))
		}
	}
	for i := range shown.Groups {
		g := &shown.Groups[i]
		if kind, name, named := strings.Cut(g.Target, ":"); named {
			l, ok := listedAs(lists, kind, name, g.Owner)
			if choice := config.Choose(factsOf(l)); ok && l.Unread == nil && !choice.IsNone() {
				one := m.look(ctx, specOf(l), choice, m.recordBeside(l, choice))
				if one.Err != nil {
					notes = append(notes, note.Warningf("no-plans", "weir cannot tell whether %s has the limits of its plan %s: %v", plain.Brief(l.String()), choice.Name(), one.Err))
				}
				g.Plan = &limiting.GroupPlan{Name: choice.Name(), By: choice.By, Differs: one.State == Differs}
			}
		}
	}
	return notes
}
