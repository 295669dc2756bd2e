package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// Kind resolves the names of one engine's containers within one hierarchy.
type Kind struct {
	Maker       Maker
	FS          *cgroupfs.FS
	Hierarchy   *cgroupfs.Hierarchy
	Devices     blkdev.FS
	SystemdRuns bool
	Root        string // below which the usual socket is looked for
	Host        string // Maker.Host; empty: the usual socket
}

// Name returns the engine's name: "docker", "podman".
func (k Kind) Name() string { return k.Maker.kind }

// MayKnow reports whether asking about a bare name makes sense: it can be a container's name
// and is no process number, and there is a socket that this user may write to.
func (k Kind) MayKnow(name string) bool {
	socket, err := k.socket(name)
	return err == nil && isName(name) && strings.Trim(name, "0123456789") != "" && unix.Access(socket, unix.W_OK) == nil
}

// Live names the running containers whose names begin with prefix, for completion. An engine
// that cannot be asked has none.
func (k Kind) Live(ctx context.Context, prefix string) []string {
	var names []string
	for id, name := range k.Names(ctx) {
		if name != id && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Names returns the names of the running containers, by the beginnings of their ids as in an
// Owner; of one without a name that can be typed, that beginning. nil: the engine cannot be asked.
func (k Kind) Names(ctx context.Context) map[string]string {
	socket, err := k.socket("")
	if err != nil {
		return nil
	}
	all, err := daemon{socket}.list(ctx, false, nil)
	if err != nil {
		return nil
	}
	names := map[string]string{}
	for _, c := range all {
		if !targets.IsContainerID(c.ID) {
			continue
		}
		names[c.ID[:12]] = c.ID[:12]
		for _, name := range c.Names {
			if name, ok := strings.CutPrefix(name, "/"); ok && isName(name) { // (others are links')
				names[c.ID[:12]] = name
			}
		}
	}
	return names
}

// Resolve finds the group of a running container.
func (k Kind) Resolve(ctx context.Context, name string) (targets.Target, error) {
	spec := k.Name() + ":" + name
	if !isName(name) {
		return targets.Target{}, &targets.NameError{
			Err: fmt.Errorf("%s %q: name a container by its name or id, such as %s:web, of at most 255 of a-z, A-Z, 0-9 and _ . -", k.Name(), name, k.Name())}
	}
	socket, err := k.socket(name)
	if err != nil {
		return targets.Target{}, err
	}
	c, err := daemon{socket}.inspect(ctx, name)
	if err != nil {
		return targets.Target{}, k.Maker.explain(spec, socket, err)
	}
	if !targets.IsContainerID(c.ID) {
		return targets.Target{}, fmt.Errorf("%s: %s at %s gives it the id %s, which is not valid", spec, k.Maker.title, socket, short(c.ID))
	}
	lasting := k.Name() + ":" + c.ID
	if c.State.Pid <= 0 {
		return targets.Target{}, &targets.StoppedError{Target: spec, Unit: k.Maker.ScopeOf(c.ID), Lasting: lasting, Record: c.record(ctx, k.Devices, k.Maker),
			Why: fmt.Sprintf("the container has no process (%s), so it has no cgroup to limit; start it first: %s start %s", short(c.State.Status), k.Name(), name)}
	}
	group, err := k.groupOf(spec, c)
	if err != nil {
		return targets.Target{}, err
	}
	owner := targets.OwnerOf(group, k.SystemdRuns)
	owner.Kind, owner.Name = k.Name(), c.ID[:12]
	return targets.Target{Kind: k.Name(), Name: name, Group: group, Owner: owner, Firsts: []int{c.State.Pid}, Record: c.record(ctx, k.Devices, k.Maker), Lasting: lasting}, nil
}

// Removed reports whether the engine says that it has no container with an id, running or
// not.
func (k Kind) Removed(ctx context.Context, id string) bool {
	socket, err := k.socket("")
	if err != nil || !targets.IsContainerID(id) {
		return false
	}
	_, err = daemon{socket}.inspect(ctx, id)
	var refused *refusal
	return errors.As(err, &refused) && refused.status == statusNotFound
}

// ScopeOf is the scope that systemd makes for a container.
func (m Maker) ScopeOf(id string) string { return m.prefix + id + ".scope" }

// IDOfScope is the id of the container that a scope belongs to.
func (m Maker) IDOfScope(scope string) (id string, ok bool) {
	id, is := strings.CutSuffix(strings.TrimPrefix(scope, m.prefix), ".scope")
	return id, is && strings.HasPrefix(scope, m.prefix) && targets.IsContainerID(id)
}

// groupOf finds the container's group: that of its first process, or one above, if the process
// has made groups of its own. It is named after the container wherever an engine puts it. A
// group with another name belongs to a process that got the same number later.
func (k Kind) groupOf(spec string, c container) (cgroupfs.Group, error) {
	group, err := k.FS.OfProcess(k.Hierarchy, c.State.Pid)
	if cgroupfs.IsGone(err) {
		return group, fmt.Errorf("%s: its first process, %d, is not on this host: the container has just ended, or %s runs elsewhere; try again", spec, c.State.Pid, k.Maker.title)
	}
	if err != nil {
		return group, err
	}
	below := group
	for above := group; !above.IsRoot(); above = above.Parent() {
		if k.Maker.isGroup(path.Base(above.Path()), c.ID) {
			if k.Maker.inner != "" && path.Base(below.Path()) == k.Maker.inner {
				return below, nil
			}
			return above, nil
		}
		below = above
	}
	return group, fmt.Errorf("%s: its first process, %d, is in cgroup %s, which is not the container's: the container has just ended, or %s runs elsewhere; try again, or name the group (cgroup:/PATH)",
		spec, c.State.Pid, group.Path(), k.Maker.title)
}

// isName reports whether Docker accepts a name or an id of this spelling
// (RestrictedNamePattern). Such a name is one element of a URL's path.
func isName(name string) bool { return targets.IsWord(name, nameMax) }

// nameMax bounds a name. Docker has no bound; ids have 64.
const nameMax = 255

// socket returns the engine's socket.
func (k Kind) socket(name string) (string, error) {
	if k.Host == "" {
		return filepath.Join(k.Root, k.Maker.socket), nil
	}
	scheme, rest, ok := strings.Cut(k.Host, "://")
	switch {
	case ok && scheme == "unix" && strings.HasPrefix(rest, "/"):
		return rest, nil
	case ok && (scheme == "tcp" || scheme == "http" || scheme == "https" || scheme == "ssh"):
		return "", &fault.Unsupported{Feature: k.Name() + ":" + name, Reason: k.Maker.variable + "=" + short(k.Host) + " is reached over the network, but limits are set on the host where the containers run",
			Remedy: "run weir there, with " + k.Maker.variable + "=unix:///PATH or without it"}
	}
	return "", &targets.NameError{Err: fmt.Errorf("%s=%s: write unix:///PATH, the socket of a %s on this host, or leave it unset", k.Maker.variable, short(k.Host), k.Maker.title)}
}

// explain says for the user why a question failed.
func (m Maker) explain(spec, socket string, err error) error {
	var refused *refusal
	if !errors.As(err, &refused) {
		return targets.Daemon{Title: m.title, Socket: socket, Check: m.kind + " ps",
			Remedy: fmt.Sprintf("start %s (%s), or name its socket with %s=unix:///PATH", m.title, m.start, m.variable)}.Explain(spec, err)
	}
	switch {
	case refused.status == statusNotFound:
		return &targets.NotFound{Target: spec, Why: "no such container; " + m.kind + " ps lists those that run"}
	// Docker's truncindex.ErrAmbiguousPrefix; Podman's "more than one result for ..."
	case strings.Contains(refused.message, "ultiple IDs found"), strings.Contains(refused.message, "more than one "):
		return fmt.Errorf("%s: the ids of several containers begin like this; write more of the id (%s ps --no-trunc)", spec, m.kind)
	}
	return fmt.Errorf("%s: %s at %s answers %d: %s", spec, m.title, socket, refused.status, short(refused.message))
}
