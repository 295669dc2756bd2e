package engine

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/weir-io/weir/internal/targets"
)

// A Maker is a program that makes containers, and how it differs from others.
type Maker struct {
	kind     string // of its targets, and its command
	title    string // for people
	prefix   string // of the scope of a container, before its id
	plain    string // the same where the engine makes the group itself; "" where that is the id alone
	inner    string // of the group below that, where an engine puts the container and its limits; "" for none
	variable string // names another socket
	start    string // a command that has the engine answer
	socket   string // the usual one
}

// Makers returns Docker and Podman: root's Podman, or for other users their own, without root.
func Makers() []Maker {
	return []Maker{docker, podman(os.Getuid(), os.Getenv("XDG_RUNTIME_DIR"))}
}

var docker = Maker{kind: "docker", title: "Docker", prefix: "docker-", variable: "DOCKER_HOST",
	start: "systemctl start docker", socket: "/var/run/docker.sock"}

func podman(uid int, runtimeDir string) Maker {
	m := Maker{kind: "podman", title: "Podman", prefix: "libpod-", plain: "libpod-", inner: targets.PodmanInner, variable: "CONTAINER_HOST",
		start: "systemctl start podman.socket", socket: "/run/podman/podman.sock"}
	if uid == 0 {
		return m
	}
	if runtimeDir == "" {
		runtimeDir = "/run/user/" + strconv.Itoa(uid)
	}
	m.start, m.socket = "systemctl --user start podman.socket", filepath.Join(runtimeDir, "podman/podman.sock")
	return m
}

// Kind is the kind of its targets: "docker", "podman".
func (m Maker) Kind() string { return m.kind }

// Host is the engine's address from $DOCKER_HOST or $CONTAINER_HOST.
func (m Maker) Host() string { return os.Getenv(m.variable) }

// isGroup reports whether a container's group has this name.
func (m Maker) isGroup(name, id string) bool {
	// crun uses only the id if a user's Podman leaves the name to it.
	return name == id || name == m.plain+id || name == m.prefix+id+".scope"
}
