package dropin

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// runtimes are the units that start what may use a volume.
const runtimes = "docker.service podman.service podman-restart.service containerd.service kubelet.service libvirtd.service virtqemud.service"

// bootHead begins a unit that a verb makes with --at-boot.
func bootHead(verb string) string {
	return "# Made by weir " + verb + " --at-boot. weir " + verb + " --at-boot=false removes it.\n[Unit]\n"
}

const bootTail = "\n[Install]\nWantedBy=multi-user.target\n"

// VolumesText is the unit that has weir, by its path, bring volumes up when the host starts:
// after the mounts that the paths are on, as far as there are such, and before what may use
// volumes.
func VolumesText(program string, paths []string) string {
	var after []string
	for _, path := range paths {
		for dir := filepath.Clean(path); dir != "/"; dir = filepath.Dir(dir) {
			if unit := mountUnit(dir); len(unit) <= unitNameMost {
				after = append(after, unit)
			}
		}
	}
	slices.Sort(after)
	return bootHead("volume up") + "Description=Volumes with limits\nAfter=local-fs.target systemd-modules-load.service " + strings.Join(slices.Compact(after), " ") +
		"\nBefore=" + runtimes + "\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=" + quote(program) + " volume up\n" + bootTail
}

// LimitsText is the unit that sets the limits of those that volumes are for, once they are
// there.
func LimitsText(program string) string {
	return bootHead("volume up") + "Description=Limits of targets that use volumes\nAfter=weir-volumes.service " + runtimes +
		"\n\n[Service]\nType=oneshot\nExecStart=" + quote(program) + " volume up\n" + bootTail
}

// RestoreText is the unit that sets kept limits of containers, when the host has started
// them, or one of those that make them has been started again.
func RestoreText(program string) string {
	const makers = "docker.service podman.service podman-restart.service containerd.service"
	return bootHead("restore") + "Description=Saved limits of containers\nAfter=weir-volumes.service " + makers +
		"\n\n[Service]\nType=oneshot\nExecStart=" + quote(program) + " restore\n\n[Install]\nWantedBy=multi-user.target " + makers + "\n"
}

// unitNameMost is the length of the longest name that systemd takes, in bytes.
const unitNameMost = 255

// mountUnit is the unit of the mount at a directory (systemd.unit(5), "String escaping").
func mountUnit(dir string) string {
	var b strings.Builder
	for i, c := range []byte(strings.Trim(dir, "/")) {
		switch {
		case c == '/':
			b.WriteByte('-')
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == ':' || c == '_' || c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String() + ".mount"
}
