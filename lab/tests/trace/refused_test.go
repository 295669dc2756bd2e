package trace_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// refused asserts that weir trace says why it cannot, and prints nothing else.
func refused(t *testing.T, cmd *exec.Cmd, parts ...string) {
	t.Helper()
	var data, said strings.Builder
	cmd.Stdout, cmd.Stderr = &data, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("weir trace: %v, want exit status 3", err)
	}
	t.Logf("%s", &said)
	for _, part := range parts {
		if !strings.Contains(said.String(), part) {
			t.Errorf("weir trace said %q, want %q in it", &said, part)
		}
	}
	if data.Len() > 0 || strings.Count(said.String(), "\n") != 1 {
		t.Errorf("weir trace printed %q and said %q, want one line said", &data, &said)
	}
}

func TestTraceWithoutRights(t *testing.T) {
	needTrace(t)
	for name, c := range map[string]struct {
		rights []uintptr
		want   string
	}{
		"none":                 {nil, "shows no addresses"},
		"to see addresses, no": {[]uintptr{unix.CAP_SYSLOG}, "does not let this process load BPF programs"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, asNobody(t, c.rights, "trace", "--json", "--for", "100ms"), c.want, "run weir as root")
		})
	}
}

// asNobody is weir as a user who has some rights. The file is opened here: that user may
// not be allowed to get there.
func asNobody(t *testing.T, rights []uintptr, args ...string) *exec.Cmd {
	t.Helper()
	const nobody = 65534
	path, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	weir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { weir.Close() })
	cmd := exec.Command("/proc/self/fd/3", args...)
	cmd.ExtraFiles = []*os.File{weir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, AmbientCaps: rights}
	return cmd
}

// User-mode Linux has no BTF.
func TestTraceWithoutTypes(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("uml"))
	refused(t, exec.Command("weir", "trace", "--json", "--for", "100ms"), "the kernel has no type information", "/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF")
}
