package enter

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// program has this test's binary enter the namespace of a process, and run a command.
const program = "WEIR_ENTERS"

func TestMain(m *testing.M) {
	if os.Getenv(program) != "" {
		if err := Cgroups(1, os.Args[1:], nil); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(3)
		}
	}
	os.Exit(m.Run())
}

// A program in a cgroup namespace of its own comes into that of process 1.
func TestCgroups(t *testing.T) {
	lab.Unit(t)
	if os.Geteuid() != 0 {
		t.Skip("only root may make a cgroup namespace")
	}
	own, err := os.Readlink("/proc/1/ns/cgroup")
	if err != nil {
		t.Skip("this kernel has no cgroup namespaces")
	}
	started := func(command ...string) (string, error) {
		cmd := exec.Command("/proc/self/exe", command...)
		cmd.Env = append(os.Environ(), program+"=1")
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	done := make(chan bool)
	go func() { // of a thread that ends with it
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
			t.Error(err)
			return
		}
		there, err := os.Readlink("/proc/thread-self/ns/cgroup")
		if err != nil || there == own {
			t.Errorf("%s, %v: this thread has no namespace of its own", there, err)
		}
		got, err := started("readlink", "/proc/self/ns/cgroup")
		if err != nil || got != own {
			t.Errorf("the program is in %q, want %q (%v)", got, own, err)
		}
	}()
	<-done
	if got, err := started("true"); err != nil {
		t.Errorf("%s: %v", got, err)
	}
	var failed *exec.ExitError
	if got, err := started(filepath.Join(t.TempDir(), "none")); !errors.As(err, &failed) || failed.ExitCode() != 3 || !strings.Contains(got, "no such file") {
		t.Errorf("%q, %v", got, err)
	}
}
