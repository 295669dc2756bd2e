package machine

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// UML is user-mode Linux.
type UML struct {
	Dir    string // has the program, and its loader and libraries (see kernel.Interpreter)
	Kernel string // the program's name in it
	Initrd string // may be empty
	Memory int    // MiB
}

// DisksMax is how many disks user-mode Linux has.
const DisksMax = 16

// Lane is "uml".
func (UML) Lane() string { return "uml" }

// Node counts /dev/ubda, /dev/ubdb, …
func (UML) Node(i int) string { return "/dev/ubd" + string(rune('a'+i)) }

// Command is the kernel as a program. See "ubd" in
// Documentation/virt/uml/user_mode_linux_howto_v2.rst for the disks: r is read-only,
// c takes no lock, so that guests can share the file. Kernels from 6.16 on can run programs
// with seccomp, where others trace them; older ones hand the word on to init.
func (u UML) Command(ctx context.Context, b Boot) *exec.Cmd {
	args := []string{
		fmt.Sprintf("mem=%dM", u.Memory),
		"uml_dir=" + b.Folder, "umid=uml",
		"con=null", "con0=null,fd:1", "ssl=null",
		"quiet", "panic=-1", "seccomp=auto",
	}
	if u.Initrd != "" {
		args = append(args, "initrd="+u.Initrd)
	}
	for i, d := range b.Disks {
		flags, path := "", d.Path
		switch {
		case d.ReadOnly:
			flags = "rc"
		case d.Scratch:
			flags, path = "c", filepath.Join(b.Folder, d.Name+".cow")+","+d.Path
		}
		args = append(args, fmt.Sprintf("ubd%d%s=%s", i, flags, path))
	}
	cmd := exec.CommandContext(ctx, "./"+u.Kernel, append(args, b.Words...)...)
	cmd.Dir = u.Dir // the relocated loader is found from here
	cmd.Env = []string{
		"LD_LIBRARY_PATH=" + filepath.Join(u.Dir, "lib"),
		"TMPDIR=" + memoryDir(b.Folder),
		"HOME=" + b.Folder,
	}
	return cmd
}
