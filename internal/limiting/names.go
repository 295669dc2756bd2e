package limiting

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/targets/engine"
)

// namesWithin bounds how long Show waits for names: the ids do as well.
const namesWithin = time.Second

// nameGroups gives the groups of containers, pods and domains their names, if their daemon
// reports them.
func (m Manager) nameGroups(ctx context.Context, groups []Group) {
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	m.nameDomains(groups)
	for _, maker := range engine.Makers() {
		kind := m.Host.Containers(maker, nil)
		itsOwn := func(g Group) bool { return g.Owner.Kind == kind.Name() }
		if !slices.ContainsFunc(groups, itsOwn) {
			continue
		}
		names := kind.Names(ctx)
		for i, g := range groups {
			switch name := names[g.Owner.Name]; {
			case !itsOwn(g) || names == nil:
			case name != "":
				groups[i].Target = kind.Name() + ":" + name
			default: // of another engine: a user's own, or one in a container
				groups[i].Target = "cgroup:" + g.Path
			}
		}
	}
	// Others ask for a group by what it is called, which their groups' owner does not tell.
	nameOthers(groups, "containerd", func() func(string) string { return m.Host.Containerd(nil).Namer(ctx) })
	if slices.ContainsFunc(groups, func(g Group) bool { return strings.Contains(g.Path, "pod") }) {
		nameOthers(groups, "kubernetes", func() func(string) string { return m.Host.Pods(nil).Namer(ctx) })
	}
}

// markContainers says which groups are containers of Kubernetes pods, if the container runtime reports them.
func (m Manager) markContainers(ctx context.Context, groups []Group, known []watch.Known) {
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	var within func(string) targets.InPod
	for i, g := range groups {
		if _, in := targets.PodOf(path.Dir(g.Path)); !in {
			continue
		}
		if within == nil {
			within = m.Host.Pods(nil).Within(ctx)
		}
		known[i].InPod = within(g.Path)
	}
}

// nameDomains gives libvirt domains libvirt's names. A domain that libvirt does not report keeps
// the name of its group, because the name of its scope could mean another domain.
func (m Manager) nameDomains(groups []Group) {
	var names map[string]string
	for i, g := range groups {
		if g.Owner.Kind != "libvirt" {
			continue
		}
		if names == nil {
			names = map[string]string{}
			if io, err := m.Host.IO(); err == nil {
				names = m.Host.Machines(io).Names()
			}
		}
		if name := names[g.Path]; name != "" {
			groups[i].Target, groups[i].Owner.Name = "vm:"+name, name
		} else {
			groups[i].Target = "cgroup:" + g.Path
		}
	}
}

// nameOthers spells groups that nothing better is known of by what a daemon calls them. It is
// asked only if there are any. Their owner is that of the target of this name.
func nameOthers(groups []Group, owner string, ask func() func(string) string) {
	var name func(group string) string
	for i, g := range groups {
		if !strings.HasPrefix(g.Target, "cgroup:") && !strings.HasPrefix(g.Target, "unit:") || g.Owner.Kind == "kernel" {
			continue
		}
		if name == nil {
			name = ask()
		}
		if is := name(g.Path); is != "" {
			_, called, _ := strings.Cut(is, ":")
			groups[i].Target, groups[i].Owner.Kind, groups[i].Owner.Name = is, owner, called
		}
	}
}
