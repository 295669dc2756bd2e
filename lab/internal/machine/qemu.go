package machine

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// QEMU is a PC without KVM.
type QEMU struct {
	Kernel string
	Initrd string
	Memory int // MiB
}

// Lane is "qemu".
func (QEMU) Lane() string { return "qemu" }

// Node counts /dev/vda, /dev/vdb, … in the order of the PCI bus. Once the guest can
// look, it finds disks by their serial numbers.
func (QEMU) Node(i int) string { return "/dev/vd" + string(rune('a'+i)) }

// Command starts the emulator, whose standard output is the serial console. It has
// one processor: with two, on a busy host, the second sometimes gets no timer
// interrupt from the emulated APIC, and the guest hangs in an RCU stall.
func (q QEMU) Command(ctx context.Context, b Boot) *exec.Cmd {
	words := append([]string{
		"console=ttyS0", "quiet", "panic=-1", "mitigations=off", "random.trust_cpu=on",
		"no_timer_check", // a guest that gets no processor for a moment takes its timer for broken
	}, b.Words...)
	args := []string{
		"-accel", "tcg,thread=multi", "-M", "q35", "-cpu", emulated, "-smp", "1", "-m", fmt.Sprint(q.Memory),
		"-nodefaults", "-no-user-config", "-no-reboot",
		"-display", "none", "-monitor", "none", "-serial", "stdio",
		"-kernel", q.Kernel, "-initrd", q.Initrd, "-append", strings.Join(words, " "),
	}
	for i, d := range b.Disks {
		drive := fmt.Sprintf("if=none,id=d%d,format=raw,cache=unsafe,file=%s", i, d.Path)
		switch {
		case d.ReadOnly:
			drive += ",readonly=on"
		case d.Scratch:
			drive += ",snapshot=on"
		}
		args = append(args, "-drive", drive,
			"-device", fmt.Sprintf("virtio-blk-pci,drive=d%d,serial=%s", i, d.Name))
	}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	cmd.Env = append(cmd.Environ(), "TMPDIR="+b.Folder) // for what is written to scratch disks
	return cmd
}

// emulated is the processor. Without cx16: QEMU 7.2 spoils the flags of a cmpxchg16b,
// by which the kernel's allocator dies while it boots (6.12 nearly always).
const emulated = "max,cx16=off"
