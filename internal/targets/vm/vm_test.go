package vm

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/targets"
)

func host(t *testing.T, version cgroupfs.Version, files map[string]string) Kind {
	t.Helper()
	h := cgrouptest.New(t, version, files)
	return Kind{FS: h.FS, Hierarchy: h.IO, SystemdRuns: true, Root: h.Root}
}

const scope = `/machine.slice/machine-qemu\x2d3\x2ddb.scope`

const inner = `/machine.slice/machine-qemu\x2d4\x2ddb.scope/libvirt`

// The group is on v2 the one that libvirt makes in machined's scope, if that can have
// limits, and else the scope; on v1 the one of the process. Older libvirts make their own.
func TestGroup(t *testing.T) {
	for group, want := range map[string]string{
		scope + "/libvirt/emulator":                   scope,
		inner + "/emulator":                           inner,
		scope:                                         scope,
		"/machine/qemu-3-db.libvirt-qemu/vcpu0":       "/machine/qemu-3-db.libvirt-qemu",
		"/libvirt/qemu/db":                            "/libvirt/qemu/db",
		"/system.slice/libvirtd.service":              "",
		`/machine.slice/machine-lxc\x2d3\x2ddb.scope`: "",
		"/": "",
	} {
		k := host(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup" + inner + "/io.max": "", "run/libvirt/qemu/db.pid": "4711", "proc/4711/cgroup": "0::" + group + "\n", "proc/4711/fd/x": ""})
		got, err := k.Resolve(t.Context(), "db")
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "which is not libvirt's") {
				t.Errorf("%s: %v, %v", group, got.Group.Path(), err)
			}
			continue
		}
		if err != nil || got.Group.Path() != want || got.Owner.Kind != "libvirt" || got.String() != "vm:db" {
			t.Errorf("%s: %s, %+v, %v", group, got.Group.Path(), got.Owner, err)
		}
	}
	k := host(t, cgroupfs.V1, map[string]string{"run/libvirt/lxc/db.pid": "4711\n", "proc/4711/task/4711/children": "4712 4713 ",
		"proc/4711/cgroup": `5:blkio:/machine.slice/machine-lxc\x2d3\x2ddb.scope/libvirt` + "\n"})
	got, err := k.Resolve(t.Context(), "db")
	if err != nil || got.Group.Path() != `/machine.slice/machine-lxc\x2d3\x2ddb.scope/libvirt` || !slices.Equal(got.Firsts, []int{4712}) || got.Owner.Unit != "" {
		t.Errorf("v1: %s, %+v, %v", got.Group.Path(), got, err)
	}
}

func TestRefused(t *testing.T) {
	var none *targets.NoKindError
	if _, err := host(t, cgroupfs.V2, nil).Resolve(t.Context(), "db"); !errors.As(err, &none) {
		t.Errorf("without libvirt: %v", err)
	}
	k := host(t, cgroupfs.V2, map[string]string{
		"run/libvirt/qemu/twice.pid": "1", "run/libvirt/lxc/twice.pid": "2", "run/libvirt/qemu/odd.pid": "x", "run/libvirt/qemu/ended.pid": "4712", "secret.pid": "1",
	})
	for name, want := range map[string]string{
		"twice": "QEMU and LXC both have a domain of this name", "odd": "has no process number", "ended": "its process, 4712, has ended", "nobody": "no such domain is running",
		"..": "no such domain is running", "": "name a domain as", "../../../secret": "name a domain as", "a\nb": "name a domain as",
		"a\x00b": "name a domain as", "\xff": "name a domain as", strings.Repeat("x", 300): "name a domain as",
	} {
		if _, err := k.Resolve(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", name, err, want)
		}
	}
	if got := k.Live("t"); !slices.Equal(got, []string{"twice"}) {
		t.Errorf("live: %q", got)
	}
}

// What QEMU has open for reading and writing is its disks: not its log and its sockets. What it only
// reads is beside them.
func TestOpenDisks(t *testing.T) {
	dir := t.TempDir()
	open := func(name string, flags int) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, name), flags|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
	}
	open("image", os.O_RDWR)
	open("kept (deleted)", os.O_RDWR) // it is called so
	open("log", os.O_WRONLY|os.O_APPEND)
	open("backing", os.O_RDONLY)
	open("gone", os.O_RDWR)
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	all, err := openDisks("/", os.Getpid())
	mine := func(all []string) []string {
		return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, dir) })
	}
	if written := mine(all.written); err != nil || !slices.Equal(written, []string{filepath.Join(dir, "image"), filepath.Join(dir, "kept (deleted)")}) {
		t.Errorf("%q, %v", written, err)
	}
	if read := mine(all.read); !slices.Equal(read, []string{filepath.Join(dir, "backing")}) {
		t.Errorf("%q", read)
	}
}

// What QEMU has open beside its disks: memory that it shares, firmware, the variables of
// that. A file that cannot be looked at does not hide the others.
func TestWhatIsNoDisk(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "proc/4711")
	for _, d := range []string{"fd", "fdinfo"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const image, usb, local = "/vm.qcow2", "/run/media/me/USB/vm.qcow2", "/usr/local/vms/vm.img"
	for n, c := range []struct{ name, flags string }{
		{"/dev/shm/my_shmem0", "0100002"}, {"/run/shm/x", "0100002"}, {"/dev/hugepages/libvirt/qemu/1-db/pc.ram", "0100002"},
		{"/var/lib/libvirt/qemu/nvram/db_VARS.fd", "0100002"}, {"/usr/share/OVMF/OVMF_CODE.fd", "0100000"}, {"/memfd:ram (deleted)", "0100002"},
		{"/srv/gone.qcow2", "0100002"}, {image, "0100002"}, {"pipe:[1]", "02"},
		{usb, "0100002"}, {local, "0100002"}, {"/usr/lib64/qemu/bios.bin", "0100000"}, {"/run/libvirt/qemu/1-db/master-key.aes", "0100002"},
	} {
		number := strconv.Itoa(n)
		if err := errors.Join(os.Symlink(c.name, filepath.Join(dir, "fd", number)), os.WriteFile(filepath.Join(dir, "fdinfo", number), []byte("pos:\t0\nflags:\t"+c.flags+"\nmnt_id:\t1\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if file := filepath.Join(root, c.name); c.name[0] == '/' && c.name != "/srv/gone.qcow2" {
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := openDisks(root, 4711)
	if err != nil || !slices.Equal(all.written, []string{usb, local, image}) || len(all.read) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A domain with disks on the network only has none here, and the remedy is libvirt's.
func TestNoDisks(t *testing.T) {
	k := host(t, cgroupfs.V2, map[string]string{"run/libvirt/qemu/db.pid": "4711", "proc/4711/cgroup": "0::" + scope + "\n", "proc/4711/fd/x": ""})
	got, err := k.Resolve(t.Context(), "db")
	if err != nil || !fault.IsUnsupported(got.NoDisks) || !strings.Contains(got.NoDisks.Error(), "virsh blkdeviotune db DISK") {
		t.Errorf("%+v, %v", got, err)
	}
	k = host(t, cgroupfs.V2, map[string]string{"run/libvirt/qemu/$(reboot).pid": "4711", "proc/4711/cgroup": "0::" + scope + "\n", "proc/4711/fd/x": ""})
	if got, err = k.Resolve(t.Context(), "$(reboot)"); err != nil || got.NoDisks == nil || !strings.Contains(got.NoDisks.Error(), "virsh blkdeviotune '$(reboot)' DISK") { // it is to be copied to a shell
		t.Errorf("%v, %v", got.NoDisks, err)
	}
}

// machined's name of a scope is not the domain's: another one can be called so.
func TestNames(t *testing.T) {
	const other = `/machine.slice/machine-qemu\x2d4\x2dfedoradefault.scope`
	k := host(t, cgroupfs.V2, map[string]string{"run/libvirt/qemu/fedora_default.pid": "4711", "proc/4711/cgroup": "0::" + `/machine.slice/machine-qemu\x2d3\x2dfedoradefault.scope/libvirt/emulator` + "\n",
		"run/libvirt/qemu/fedoradefault.pid": "4712", "proc/4712/cgroup": "0::" + other + "\n", "run/libvirt/qemu/odd.pid": "x", "run/libvirt/lxc/ended.pid": "4713"})
	want := map[string]string{`/machine.slice/machine-qemu\x2d3\x2dfedoradefault.scope`: "fedora_default", other: "fedoradefault"}
	if got := k.Names(); !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
