package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/target/engine"
)

// namesWithin bounds how long weir show waits for names: the ids do as well.
const namesWithin = time.Second

// nameContainers gives containers and pods their names, if their daemon reports them.
func (a *app) nameContainers(ctx context.Context, groups []showGroup) {
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	a.nameDomains(groups)
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
	// Others ask for a group by what it is called, which their groups' owner does not tell.
	a.nameGroups(groups, func() func(string) string { return a.containerd(nil).Namer(ctx) })
	if slices.ContainsFunc(groups, func(g showGroup) bool { return strings.Contains(g.Cgroup, "pod") }) {
		a.nameGroups(groups, func() func(string) string { return a.pods(nil).Namer(ctx) })
	}
}

// nameDomains gives libvirt domains libvirt's names. A domain that libvirt does not report
// keeps the name of its group, because the name of its scope could mean another domain.
func (a *app) nameDomains(groups []showGroup) {
	var names map[string]string
	for i, g := range groups {
		if g.Owner.Kind != "libvirt" {
			continue
		}
		if names == nil {
			names = map[string]string{}
			if h, err := a.io(); err == nil {
				names = a.machines(h).Names()
			}
		}
		if name := names[g.Cgroup]; name != "" {
			groups[i].Target, groups[i].Owner.Name = "vm:"+name, name
		} else {
			groups[i].Target = "cgroup:" + g.Cgroup
		}
	}
}

// nameGroups spells groups that nothing better is known of by what a daemon calls them. It
// is asked only if there are any.
func (a *app) nameGroups(groups []showGroup, ask func() func(string) string) {
	var name func(group string) string
	for i, g := range groups {
		if !strings.HasPrefix(g.Target, "cgroup:") && !strings.HasPrefix(g.Target, "unit:") || g.Owner.Kind == "kernel" {
			continue
		}
		if name == nil {
			name = ask()
		}
		if is := name(g.Cgroup); is != "" {
			groups[i].Target = is
		}
	}
}
