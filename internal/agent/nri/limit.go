package nri

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/containerd/nri/pkg/api"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// criNamespace is containerd's namespace for the containers of pods (containerd, internal/cri/constants). CRI-O's go by the
// same name.
const criNamespace = "k8s.io"

// listedPod describes a pod as its source does.
func listedPod(p *api.PodSandbox) targets.Listed {
	return targets.Listed{Kind: "pod", Name: p.GetNamespace() + "/" + p.GetName(), Names: []string{p.GetName()}, Namespace: p.GetNamespace(), UID: p.GetUid(),
		Labels: p.GetLabels(), Annotations: annotationsOf(p)}
}

// listedContainer describes a container as its source does.
func listedContainer(p targets.Listed, c *api.Container) targets.Listed {
	name := criNamespace + "/" + c.GetId()
	return targets.Listed{Kind: "containerd", Name: name, Names: []string{name}, ID: c.GetId(), Labels: c.GetLabels(), Annotations: p.Annotations}
}

// annotationsOf are a pod's annotations. None is no nil: a pod always has some.
func annotationsOf(p *api.PodSandbox) map[string]string {
	if all := p.GetAnnotations(); all != nil {
		return all
	}
	return map[string]string{}
}

// asks reports whether a target asks for limits by its own annotations. What others have planned for
// it is no reason not to start.
func asks(c plans.Choice) bool { return c.Asks() || c.IsChosen() }

// A limiter puts limits into force. It serves one goroutine.
type limiter struct {
	open   func() (*host.Host, error)
	host   *host.Host // nil: not opened yet
	live   planned.Live
	note   func(planned.Target, *planned.Note)
	begun  func(b *planned.Birth, kind, name string)
	unseen func(pod string, volumes []string)

	after []func() // what can follow the answer

	active map[blkdev.Number]bool // disks that the kernel throttles already, as far as is known
	looked map[string]bool        // for what they were looked up
}

// takeAfter returns what can follow the answer, once.
func (l *limiter) takeAfter() []func() {
	all := l.after
	l.after = nil
	return all
}

func (l *limiter) close() error {
	if l.host == nil {
		return nil
	}
	err := l.host.Close()
	l.host = nil
	return err
}

// reopen opens the host, anew if it was opened before.
func (l *limiter) reopen() error {
	if err := l.close(); err != nil {
		return err
	}
	h, err := l.open()
	if err == nil {
		l.host, l.active, l.looked = h, map[blkdev.Number]bool{}, map[string]bool{} // there may be other disks
	}
	return err
}

// manager opens the host, unless it is open.
func (l *limiter) manager(config *plans.Config) (planned.Manager, error) {
	if l.host == nil {
		if err := l.reopen(); err != nil {
			return planned.Manager{}, err
		}
	}
	return planned.Manager{Host: l.host, Config: config, Live: l.live}, nil
}

// prepare does for the start of a container that is made now what does not need the container: see planned.Activate.
func (l *limiter) prepare(ctx context.Context, config *plans.Config, p *api.PodSandbox, c *api.Container) error {
	m, err := l.manager(config)
	if err != nil {
		return err
	}
	io, err := m.Host.IO()
	if err != nil {
		return err
	}
	pod := m.Now(listedPod(p))
	group, err := sandboxOf(io, p, c)
	if err != nil || group == nil {
		return err
	}
	disks, err := m.DisksMounted()
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range []targets.Listed{pod, listedContainer(pod, c)} {
		choice := m.ChoiceOf(one)
		key := fmt.Sprintf("%p %s %t %s", config, choice.Plan, choice.Asks() || len(choice.Volumes) > 0, disks)
		if choice.IsNone() || l.looked[key] {
			continue
		}
		l.looked[key] = true // what is wrong is told once, and of each start
		errs = append(errs, m.Activate(ctx, choice, *group, l.active))
	}
	return errors.Join(errs...)
}

// An ownError is an error of what a pod's own annotations ask: it keeps the container from starting.
type ownError struct{ error }

func (e *ownError) Unwrap() error { return e.error }

// start puts the limits of a pod and of its container into force. It reports whether there are any.
func (l *limiter) start(ctx context.Context, config *plans.Config, p *api.PodSandbox, c *api.Container) (limited bool, err error) {
	m, err := l.manager(config)
	if err != nil {
		return false, err
	}
	pod := m.Now(listedPod(p))
	container := listedContainer(pod, c)
	io, err := m.Host.IO()
	if err != nil {
		return false, ownOr(err, asks(m.ChoiceOf(pod)) || asks(m.ChoiceOf(container)))
	}
	its, err := groupOf(m.Host.FS, io, c)
	if err != nil {
		return false, fmt.Errorf("container %s: %w", container.Name, err)
	}
	var errs []error
	for _, one := range []struct {
		targets.Listed
		find func() (targets.Target, error)
	}{
		{pod, func() (targets.Target, error) { return podTarget(m.Host, its, pod) }},
		{container, func() (targets.Target, error) { return containerTarget(m.Host, its, container) }},
	} {
		choice := m.ChoiceOf(one.Listed)
		if choice.IsNone() {
			continue
		}
		t, err := one.find()
		if err == nil {
			var has bool
			has, err = l.put(ctx, m, one.Listed, t)
			limited = limited || has
		}
		if err != nil {
			errs = append(errs, ownOr(fmt.Errorf("%s: %w", one.Listed, err), asks(choice)))
		}
	}
	return limited, errors.Join(errs...)
}

// ownOr marks an error that the target's own annotations are a reason for.
func ownOr(err error, own bool) error {
	var volume *planned.VolumeError
	if own && !errors.Is(err, errShared) && !errors.As(err, &volume) {
		return &ownError{err}
	}
	return err
}

// put puts the limits of one target into force. It reports whether there are any: the agent may have
// set them already, because the target's group was there before.
func (l *limiter) put(ctx context.Context, m planned.Manager, listed targets.Listed, t targets.Target) (limited bool, err error) {
	found := m.Given(ctx, listed, t)
	if len(found.Unfound) > 0 {
		l.after = append(l.after, func() { l.unseen(found.Name, found.Unfound) })
	}
	if err := l.putFound(ctx, m, listed, &found); err != nil {
		return false, err
	}
	return slices.ContainsFunc(found.Rows, func(d planned.Device) bool { return d.Plan.Bounds() }), nil
}

// putFound puts into force what differs: the rules at once, and the rest once the container starts, if the agent
// can do that.
func (l *limiter) putFound(ctx context.Context, m planned.Manager, listed targets.Listed, found *planned.Target) error {
	if found.State != planned.Differs {
		return found.Err
	}
	birth, done, early := m.BeginGiven(ctx, found)
	if done {
		l.after = append(l.after, func() { l.begun(birth, listed.Kind, nameIn(listed)) })
		return nil
	}
	if err := m.PutGiven(ctx, found); err != nil {
		return errors.Join(err, early)
	}
	if found.State == planned.Changed {
		n := m.NoteOf(*found)
		l.after = append(l.after, func() { l.note(*found, n) })
	}
	return nil
}

// nameIn is the name by which a source looks at a target.
func nameIn(l targets.Listed) string {
	if l.Kind == "pod" {
		return l.UID
	}
	return l.ID
}

// podTarget is the target of a pod that one of its containers is in.
func podTarget(h *host.Host, container cgroupfs.Group, l targets.Listed) (targets.Target, error) {
	if container.Hierarchy().Version == cgroupfs.V1 {
		return targets.Target{}, &fault.Unsupported{Feature: "limit a pod", Reason: "on cgroup v1 a limit applies to one group and not to its child groups, and each container of a pod has its own group",
			Remedy: "limit its containers (annotations with .CONTAINER at the end), or boot with cgroup v2"}
	}
	g, err := podGroupOf(container, l.UID)
	if err != nil {
		return targets.Target{}, err
	}
	firsts, err := firstsIn(g, container)
	owner := targets.OwnerOf(g, h.SystemdRuns())
	owner.Kind, owner.Name = "kubernetes", l.Name
	return targets.Target{Kind: l.Kind, Name: l.Name, Group: g, Owner: owner, Firsts: firsts}, err
}

// containerTarget is the target of a container.
func containerTarget(h *host.Host, g cgroupfs.Group, l targets.Listed) (targets.Target, error) {
	firsts, err := targets.Members(g)
	owner := targets.OwnerOf(g, h.SystemdRuns())
	owner.Kind, owner.Name = l.Kind, l.Name
	return targets.Target{Kind: l.Kind, Name: l.Name, Group: g, Owner: owner, Firsts: firsts[:min(len(firsts), 1)], Lasting: l.String()}, err
}
