package lab

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab/environ"
)

// Rebooted reports whether a test has booted this guest again.
func Rebooted() bool { return os.Getenv(environ.Again) != "" }

// Reboot boots a full guest again, at once, as a power cut would that comes when all is on
// the disk: nothing is told to end. The test that calls it begins anew then, and with it
// the rest of its suite; Rebooted tells it where it is.
func Reboot(t testing.TB) {
	t.Helper()
	e := Need(t, Guest, Systemd, Lane("uml"))
	if Rebooted() {
		t.Fatal("a guest boots again once")
	}
	if t.Failed() {
		t.FailNow() // the log of this boot goes with it
	}
	if err := os.CopyFS(environ.Kept, os.DirFS(filepath.Join(e.Dir, environ.Results))); err != nil {
		t.Fatal(err)
	}
	up, err := os.ReadFile("/proc/uptime")
	if err == nil {
		err = os.WriteFile(filepath.Join(environ.Kept, environ.Uptime), up, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	t.Fatal("the guest has not booted again")
}
