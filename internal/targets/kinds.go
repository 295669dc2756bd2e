package targets

import (
	"slices"
	"strings"
)

// A Description says what a kind of targets is.
type Description struct {
	Name  string // the kind's: "docker"
	What  string // one target of the kind, for people: "a Docker container"
	Files bool   // its targets have files of their own on the host, in directories that no other uses
}

// Descriptions are all kinds, in the order in which people are shown them. Package host makes the
// kinds themselves.
func Descriptions() []Description {
	return []Description{
		{"unit", "a systemd unit", false},
		{"docker", "a Docker container", true},
		{"podman", "a Podman container", true},
		{"containerd", "a containerd container, by namespace and id", true},
		{"pod", "a Kubernetes pod, by namespace and name", false},
		{"vm", "a libvirt virtual machine or container", false},
		{"pid", "a process", false},
		{"cgroup", "a control group, by its path", false},
	}
}

// KindOf describes the kind that a target is spelled with: "docker" of docker:web. ok is false for
// any other text.
func KindOf(spec string) (d Description, ok bool) {
	kind, _, spelled := strings.Cut(spec, ":")
	all := Descriptions()
	i := slices.IndexFunc(all, func(d Description) bool { return d.Name == kind })
	if !spelled || i < 0 {
		return Description{}, false
	}
	return all[i], true
}
