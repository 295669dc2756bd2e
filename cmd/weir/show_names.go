package main

import (
	"context"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/target/engine"
)

// namesWithin bounds how long weir show waits for names: the ids do as well.
const namesWithin = time.Second

// nameContainers spells containers by their names, where there are any and their engine
// says.
func (a *app) nameContainers(ctx context.Context, groups []showGroup) {
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	for _, maker := range engine.Makers() {
		kind := a.containers(maker, nil)
		itsOwn := func(g showGroup) bool { return g.Owner.Kind == kind.Name() }
		if !slices.ContainsFunc(groups, itsOwn) {
			continue
		}
		names := kind.Names(ctx)
		for i, g := range groups {
			if name := names[g.Owner.Name]; itsOwn(g) && name != "" {
				groups[i].Target = kind.Name() + ":" + name
			}
		}
	}
}
