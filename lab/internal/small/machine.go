package small

import (
	"path/filepath"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/kernel"
	"github.com/weir-io/weir/lab/internal/machine"
)

// Memory is what a small guest has as a rule, in MiB.
const Memory = 1024

// testDisks: measured tests run side by side, so there are several of each kind.
var testDisks = []machine.Set{{FS: "ext4", Number: 5}, {FS: "xfs", Number: 4}, {FS: "btrfs", Number: 2}, {FS: "raw", Number: 3}}

// Machine is a guest that boots the image. ioMount is an unusual mount point of the
// io controller's hierarchy, or empty. memory is in MiB.
func (i Image) Machine(title string, mode environ.Mode, ioMount string, memory int) machine.Machine {
	initrd := filepath.Join(i.Dir, initrdFile)
	var carrier machine.Carrier = machine.QEMU{Kernel: filepath.Join(i.Dir, kernelFile), Initrd: initrd, Memory: memory}
	if i.Kind == kernel.UML {
		carrier = machine.UML{Dir: i.Dir, Kernel: kernelFile, Initrd: initrd, Memory: memory}
	}
	return machine.Machine{Title: title, Carrier: carrier, Mode: mode, IOMount: ioMount, Tests: testDisks}
}
