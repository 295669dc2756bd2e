package blkdev

import (
	"fmt"
	"slices"
	"strings"
)

// memory are the file systems that keep files in memory.
const memory words = "tmpfs ramfs rootfs devtmpfs hugetlbfs"

// pseudo are the file systems that hold nothing: views of the kernel or of a daemon.
const pseudo words = `anon_inodefs apparmorfs autofs bdev binder binfmt_misc bpf cgroup cgroup2
	configfs cpuset debugfs devpts efivarfs functionfs fusectl mqueue nfsd nsfs openpromfs
	pidfs pipefs proc pstore resctrl rpc_pipefs securityfs selinuxfs smackfs sockfs sysfs
	tracefs xenfs fuse.gvfsd-fuse fuse.lxcfs fuse.portal`

// network are the file systems whose blocks are on another machine.
const network words = `afs beegfs ceph cifs coda davfs fuse.ceph fuse.glusterfs fuse.sshfs gpfs lustre
	ncpfs nfs nfs4 orangefs pvfs2 smb2 smb3 smbfs`

// shared are the file systems that a virtual machine's host lends.
const shared words = `9p virtiofs vboxsf prl_fs vmhgfs fuse.vmhgfs-fuse drvfs`

// words is a list of names. It is no map: every weir would make that at its start.
type words string

func (w words) has(name string) bool { return slices.Contains(strings.Fields(string(w)), name) }

// holdsNothing reports whether a limit on such a mount makes no sense, so that weir need not
// mention it.
func holdsNothing(fstype string) bool { return memory.has(fstype) || pseudo.has(fstype) }

// withoutDevice says why a file system has no block device, or "" if it may have one.
func withoutDevice(m Mount) string {
	t := m.FSType
	switch {
	case memory.has(t):
		return t + " keeps its files in memory"
	case pseudo.has(t):
		return t + " has no files on a disk: it is a view into the kernel or a daemon"
	case network.has(t):
		return fmt.Sprintf("%s keeps its files on another machine (%s); limit the network, or the disk over there", t, m.Source)
	case shared.has(t):
		return fmt.Sprintf("%s is a directory of the host of this virtual machine (%s); set the limit on the host", t, m.Source)
	case t == "zfs":
		return fmt.Sprintf("zfs does the I/O of %s in its own threads, and the kernel charges it to no group; "+
			"give the target a zvol, or name a disk of the pool", m.Source)
	case t == "bcachefs":
		return fmt.Sprintf("bcachefs does not tell which of its members an I/O goes to; name the member you mean: %s",
			strings.ReplaceAll(m.Source, ":", ", "))
	case t == "fuse" || strings.HasPrefix(t, "fuse."):
		return fmt.Sprintf("a process serves %s (%s) and does its I/O; set the limit on that process, or name a disk", t, m.Source)
	}
	return ""
}
