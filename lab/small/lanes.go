package small

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/lab/bootline"
)

// umlCommand starts user-mode Linux. Its disks are ubda, ubdb, … in this order
// (see "ubd" in Documentation/virt/uml/user_mode_linux_howto_v2.rst): r is read-only,
// c takes no lock, so that guests can share the payload.
func umlCommand(ctx context.Context, image Image, line bootline.Line, disks []disk, folder string) *exec.Cmd {
	args := []string{
		"mem=1024M",
		"initrd=" + filepath.Join(image.Dir, "initrd"),
		"uml_dir=" + folder,
		"umid=uml",
		"con=null", "con0=null,fd:1",
		"quiet", "panic=-1",
	}
	for i, d := range disks {
		flags := ""
		if d.readOnly {
			flags = "rc"
		}
		args = append(args, fmt.Sprintf("ubd%d%s=%s", i, flags, d.path))
	}
	cmd := exec.CommandContext(ctx, "./kernel", append(args, line.Words()...)...)
	cmd.Dir = image.Dir // the relocated loader is found from here
	cmd.Env = []string{"LD_LIBRARY_PATH=" + filepath.Join(image.Dir, "lib"), "HOME=" + folder}
	return cmd
}

// qemuCommand starts a PC without KVM, whose console is the program's output. It
// has one processor: with two, on a busy host, the second sometimes gets no timer
// interrupt from the emulated APIC, and the guest hangs in an RCU stall.
func qemuCommand(ctx context.Context, image Image, line bootline.Line, disks []disk) *exec.Cmd {
	kernelLine := append([]string{
		"console=ttyS0", "quiet", "panic=-1", "mitigations=off", "random.trust_cpu=on",
	}, line.Words()...)
	args := []string{
		"-accel", "tcg,thread=multi", "-M", "q35", "-cpu", "max", "-smp", "1", "-m", "1024",
		"-nodefaults", "-no-user-config", "-no-reboot",
		"-display", "none", "-monitor", "none", "-serial", "stdio",
		"-kernel", filepath.Join(image.Dir, "kernel"),
		"-initrd", filepath.Join(image.Dir, "initrd"),
		"-append", strings.Join(kernelLine, " "),
	}
	for i, d := range disks {
		drive := fmt.Sprintf("if=none,id=d%d,format=raw,cache=unsafe,file=%s", i, d.path)
		if d.readOnly {
			drive += ",readonly=on"
		}
		args = append(args, "-drive", drive,
			"-device", fmt.Sprintf("virtio-blk-pci,drive=d%d,serial=%s", i, d.name))
	}
	return exec.CommandContext(ctx, "qemu-system-x86_64", args...)
}
