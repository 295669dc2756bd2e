package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab/internal/guest"
)

// boot is what a machine with two disks of its own gives its carrier. The agent finds
// test disks by their place, so the system's own must come after them.
func boot(c Carrier) Boot {
	m := Machine{Title: "x", Carrier: c, Words: []string{"rw"}, System: []Disk{
		{Name: "root", Word: "root", Path: "/c/root.ext4", Scratch: true},
		{Name: "modules", Word: "lab.modules", Path: "/c/modules", ReadOnly: true},
	}}
	disks := []Disk{{Name: "job", Path: "/j", ReadOnly: true}, {Name: "out", Path: "/o"}}
	return Boot{Folder: "/f", Disks: append(disks, m.System...), Words: m.words(guest.Job{Timeout: time.Minute}, disks)}
}

func TestUMLNumbersDisks(t *testing.T) {
	args := UML{Dir: "/k", Kernel: "linux", Memory: 1024}.Command(t.Context(), boot(UML{})).Args
	for _, want := range []string{
		"./linux", "mem=1024M", "rw",
		"ubd0rc=/j", "ubd1=/o", "weir.disks=job,out",
		"ubd2c=/f/root.cow,/c/root.ext4", "root=/dev/ubdc",
		"ubd3rc=/c/modules", "lab.modules=/dev/ubdd",
		"weir.guest=x", "weir.lane=uml", "weir.timeout=40",
	} {
		if !slices.Contains(args, want) {
			t.Errorf("no %q in %q", want, args)
		}
	}
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "initrd=") }); i >= 0 {
		t.Errorf("%s, and none was given", args[i])
	}
}

func TestQEMUNumbersDisks(t *testing.T) {
	cmd := QEMU{Kernel: "/k/kernel", Initrd: "/k/initrd", Memory: 512}.Command(t.Context(), boot(QEMU{}))
	line := strings.Join(cmd.Args, " ")
	for _, want := range []string{
		"-m 512 ", "-kernel /k/kernel -initrd /k/initrd ",
		"file=/j,readonly=on -device virtio-blk-pci,drive=d0,serial=job",
		"file=/o -device virtio-blk-pci,drive=d1,serial=out",
		"file=/c/root.ext4,snapshot=on -device virtio-blk-pci,drive=d2,serial=root",
		"file=/c/modules,readonly=on -device virtio-blk-pci,drive=d3,serial=modules",
		"root=/dev/vdc", "lab.modules=/dev/vdd", "weir.lane=qemu", " rw ",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in %q", want, line)
		}
	}
	if !slices.Contains(cmd.Env, "TMPDIR=/f") {
		t.Errorf("scratch disks are written to %q", cmd.Env)
	}
}
