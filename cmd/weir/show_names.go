package main

import (
	"context"
	"slices"
	"time"
)

// namesWithin bounds how long weir show waits for names: the ids do as well.
const namesWithin = time.Second

// nameContainers spells containers by their names, where there are any and Docker says.
func (a *app) nameContainers(ctx context.Context, groups []showGroup) {
	isDockers := func(g showGroup) bool { return g.Owner.Kind == "docker" }
	if !slices.ContainsFunc(groups, isDockers) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	names := a.docker(nil).Names(ctx)
	for i, g := range groups {
		if name := names[g.Owner.Name]; isDockers(g) && name != "" {
			groups[i].Target = "docker:" + name
		}
	}
}
