package targets

import (
	"path"
	"strings"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// IsCalledAfter reports whether a group is named after a container or a sandbox, as runtimes do
// it: ID; RUNTIME-ID.scope (made by systemd); SLICE:RUNTIME:ID (a name meant for systemd, used
// by a runtime without systemd); RUNTIME-ID (CRI-O and Podman without systemd, with long ids).
func IsCalledAfter(group, id string) bool {
	last := path.Base(group)
	name, scope := strings.CutSuffix(last, ".scope")
	switch {
	case id == "" || strings.Contains(id, "/"):
		return false
	case last == id, strings.HasSuffix(last, ":"+id):
		return true
	}
	return strings.HasSuffix(name, "-"+id) && (scope || IsContainerID(id))
}

// CalledAfter returns the id that a group is named after, if it is the group of a container
// with a random id.
func CalledAfter(group string) string {
	last := path.Base(group)
	if name, scope := strings.CutSuffix(last, ".scope"); scope {
		return name[strings.LastIndex(name, "-")+1:]
	}
	if i := strings.LastIndex(last, ":"); i >= 0 {
		return last[i+1:]
	}
	if id := last[strings.LastIndex(last, "-")+1:]; IsContainerID(id) {
		return id
	}
	return last
}

// IsPodOf reports whether a group is one that kubelet has made for a pod: podUID, or
// ...-podUID.slice with _ for -.
func IsPodOf(group, uid string) bool {
	last := path.Base(group)
	if name, slice := strings.CutSuffix(last, ".slice"); slice {
		return uid != "" && strings.HasSuffix(name, "-pod"+strings.ReplaceAll(uid, "-", "_"))
	}
	return uid != "" && last == "pod"+uid
}

// PodOf returns the UID of the pod that kubelet has made a group for, as IsPodOf knows it.
func PodOf(group string) (uid string, ok bool) {
	last := path.Base(group)
	if name, slice := strings.CutSuffix(last, ".slice"); slice {
		i := strings.LastIndex(name, "-pod")
		if i < 0 {
			return "", false
		}
		uid = strings.ReplaceAll(name[i+len("-pod"):], "_", "-")
	} else if uid, ok = strings.CutPrefix(last, "pod"); !ok {
		return "", false
	}
	return uid, uid != ""
}

// ContainerOf returns the kind and the whole id of the Docker or Podman container that a group
// was made for.
func ContainerOf(g cgroupfs.Group) (kind, id string, ok bool) {
	return container(strings.Split(strings.Trim(g.Path(), "/"), "/"))
}

// PodmanInner is the group below the group of a Podman container in which crun puts the
// container and its limits (v2).
const PodmanInner = "container"

// IsInner reports whether a group is called as the one in which crun puts a Podman container.
func IsInner(group string) bool { return path.Base(group) == PodmanInner }

// container finds the kind and the id of the container that a path belongs to: for Docker
// .../docker/ID, for Podman .../libpod-ID, and with systemd as their driver .../docker-ID.scope
// and .../libpod-ID.scope.
func container(elements []string) (kind, id string, ok bool) {
	last := elements[len(elements)-1]
	if last == PodmanInner && len(elements) > 1 && strings.HasPrefix(elements[len(elements)-2], "libpod-") {
		elements = elements[:len(elements)-1]
		last = elements[len(elements)-1]
	}
	name, scope := strings.CutSuffix(last, ".scope")
	if id, ok := strings.CutPrefix(name, "libpod-"); ok {
		return "podman", id, IsContainerID(id)
	}
	if parts := strings.Split(last, ":"); len(parts) == 3 && IsContainerID(parts[2]) {
		kind, known := map[string]string{"docker": "docker", "libpod": "podman"}[parts[1]]
		return kind, parts[2], known
	}
	if id, ok := strings.CutPrefix(name, "docker-"); ok && scope {
		return "docker", id, IsContainerID(id)
	}
	return "docker", last, len(elements) > 1 && elements[len(elements)-2] == "docker" && IsContainerID(last)
}
