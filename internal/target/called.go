package target

import (
	"path"
	"strings"
)

// IsCalledAfter reports whether a group is called after a container or a sandbox, as runtimes
// do: ID; RUNTIME-ID.scope where systemd makes it; SLICE:RUNTIME:ID, which a runtime without
// systemd makes of a name that was meant for systemd; and RUNTIME-ID, CRI-O's and Podman's
// without systemd, whose ids are long.
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

// CalledAfter is the id that a group would be called after, if it were a container's of those
// who choose ids at random.
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
