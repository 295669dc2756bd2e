package kills_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// A killed prove leaves no group, no mount, no load and no file.
func TestKilledProveLeavesNothing(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV1, lab.Rates, lab.Loop, lab.Command("mkfs.ext4"), lab.FS("ext4"), lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4")) // that it can be unmounted shows that no file is open
	places := [][]string{
		{"--on", disk.Dir, "--paths", "buffered,async"},
		{"--dir", disk.Dir, "--paths", "buffered"},
	}
	for i := range lab.Times(t, kills, len(places)) {
		cmd := exec.Command("weir", append([]string{"prove", "--quiet", "--write", "2MiB/s", "--for", "1s"}, places[i%len(places)]...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(3 * time.Second))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		lab.Await(t, 20*time.Second, "nothing to be left", func() bool {
			if err := exec.Command("weir", "show", "--for", "0").Run(); err != nil { // it sweeps
				t.Fatal(err)
			}
			return leftOn(t, disk) == ""
		})
	}
}

// leftOn names what a prove has left: groups, a mount, loads, files.
func leftOn(t *testing.T, disk *lab.TestDisk) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	all := append(lab.WeirGroups(t), loads()...)
	if strings.Contains(string(mounts), "weir/scratch") {
		all = append(all, "a mount")
	}
	if names, err := filepath.Glob(disk.Dir + "/*"); err != nil || len(names) != 1 { // lost+found
		all = append(all, fmt.Sprint("files ", names, err))
	}
	return strings.Join(all, ", ")
}

// A signal ends prove with a shell's status, and prove cleans up itself. On the scratch disk
// the outer weir passes the signal on.
func TestSignalledProveLeavesNothing(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.Loop, lab.Command("mkfs.ext4"), lab.FS("ext4"), lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	for s, place := range map[syscall.Signal]string{unix.SIGTERM: "--on", unix.SIGQUIT: "--dir"} {
		cmd := exec.Command("weir", "prove", "--write", "2MiB/s", "--paths", "direct", place, disk.Dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lab.Await(t, 20*time.Second, "the load", func() bool { return len(loads()) > 0 })
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 128+int(s) || !strings.Contains(stderr.String(), "nothing is left") {
			t.Errorf("%s: after %v weir prove ended with %v, want status %d\n%s", place, s, err, 128+int(s), &stderr)
		}
		if what := leftOn(t, disk); what != "" {
			t.Errorf("%s: after %v there is %s", place, s, what)
		}
	}
}

// loads lists the processes that are loads.
func loads() []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if line, err := os.ReadFile(f); err == nil && strings.Contains(string(line), "\x00__load\x00") {
			found = append(found, f)
		}
	}
	return found
}
