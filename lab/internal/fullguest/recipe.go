package fullguest

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

// overlay is laid over the image. All of sbin becomes executable.
//
//go:embed all:root
var overlay embed.FS

// common is what every suite's image has. Neither kernel nor boot loader: the
// host gives those.
var common = strings.Fields(`
	systemd systemd-sysv systemd-container udev dbus kmod procps iproute2 busybox-static
	util-linux fdisk e2fsprogs xfsprogs btrfs-progs quota lvm2
	docker.io containerd runc crun podman
	libvirt-daemon libvirt-daemon-driver-lxc libvirt-daemon-driver-qemu libvirt-clients
	qemu-system-x86 nginx-light`)

// bySuite is what goes by different names. libvirtd's units moved out of the
// package that also brings QEMU.
var bySuite = map[string][]string{
	"bookworm": {"libvirt-daemon-system"},
	"trixie":   {"libvirt-daemon-log", "docker-cli"},
}

// masked starts by itself and is of no use to a test, or waits for something
// that a guest has not. Names that a suite lacks do no harm.
var masked = strings.Fields(`
	getty.target getty@tty1.service console-getty.service systemd-logind.service
	timers.target apparmor.service networking.service
	keyboard-setup.service console-setup.service
	systemd-ask-password-console.path systemd-ask-password-wall.path
	systemd-binfmt.service proc-sys-fs-binfmt_misc.automount proc-sys-fs-binfmt_misc.mount
	systemd-firstboot.service systemd-sysusers.service ldconfig.service
	systemd-hwdb-update.service systemd-update-done.service systemd-update-utmp.service
	systemd-journal-catalog-update.service systemd-journal-flush.service
	systemd-machine-id-commit.service systemd-boot-update.service
	systemd-random-seed.service systemd-pstore.service systemd-rfkill.socket
	systemd-modules-load.service systemd-sysctl.service systemd-network-generator.service
	systemd-user-sessions.service systemd-fsck-root.service
	systemd-udev-load-credentials.service systemd-tmpfiles-setup-dev-early.service
	systemd-creds.socket systemd-hostnamed.socket systemd-importd.socket
	systemd-initctl.socket systemd-journald-audit.socket systemd-mountfsd.socket
	systemd-nsresourced.socket systemd-pcrextend.socket systemd-pcrlock.socket
	systemd-sysext.socket
	dev-hugepages.mount run-lock.mount tmp.mount sys-fs-fuse-connections.mount
	sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount
	blk-availability.service lvm2-monitor.service lvm2-lvmpolld.socket dm-event.socket
	e2scrub_reap.service`)

// imageBytes is the size of the root disk; the file is sparse.
const imageBytes = 2 << 30

// recipe is all that decides what an image of a suite is, except for the
// versions of its packages.
func recipe(suite string) ([]string, error) {
	lines := []string{
		"full image 1",
		"suite " + suite,
		"packages " + strings.Join(packages(suite), " "),
		"masked " + strings.Join(masked, " "),
		fmt.Sprintf("bytes %d", imageBytes),
	}
	err := fs.WalkDir(overlay, "root", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := overlay.ReadFile(path)
		lines = append(lines, path+"\n"+string(data))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("describe image: %w", err)
	}
	return lines, nil
}

func packages(suite string) []string {
	return append(append([]string(nil), common...), bySuite[suite]...)
}
