package fullguest

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// command starts user-mode Linux with the disks in this order, as ubda, ubdb, …,
// and after them the system's own three: root, modules and agent.
func (m Machine) command(ctx context.Context, disks []disk, folder string, words []string) *exec.Cmd {
	args := []string{
		"mem=1536M",
		"seccomp=auto", // kernels that do not know it hand it on to systemd, which ignores it
		"uml_dir=" + folder, "umid=uml",
		"con=null", "con0=null,fd:1", "ssl=null",
		"rw", "quiet", "panic=-1", "apparmor=0", "selinux=0", "audit=0",
		"systemd.show_status=0", "systemd.log_target=null",
	}
	for i, d := range disks {
		flags := ""
		if d.readOnly {
			flags = "rc" // read-only; no lock, so that guests can share it
		}
		args = append(args, ubd(i, flags, d.path))
	}
	n := len(disks)
	args = append(args,
		"root="+node(n), ubd(n, "c", filepath.Join(folder, "cow")+","+m.root),
		"lab.modules="+node(n+1), ubd(n+1, "rc", filepath.Join(m.kernel, modulesFile)),
		"lab.agent="+node(n+2), ubd(n+2, "rc", m.agent),
	)
	cmd := exec.CommandContext(ctx, "./"+kernelFile, append(args, words...)...)
	cmd.Dir = m.kernel // the relocated loader is found from here
	cmd.Env = []string{
		"LD_LIBRARY_PATH=" + filepath.Join(m.kernel, "lib"),
		"TMPDIR=" + memoryDir(folder),
		"HOME=" + folder,
	}
	return cmd
}

func ubd(i int, flags, path string) string { return fmt.Sprintf("ubd%d%s=%s", i, flags, path) }

func node(i int) string { return "/dev/ubd" + string(rune('a'+i)) }
