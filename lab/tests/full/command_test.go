package full

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// commandMax bounds one command in a guest. The slowest, a container's first
// start on a kernel that traces every system call, takes 15 s.
const commandMax = 90 * time.Second

// run gives a command's standard output, and ends the test when it fails.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // a daemon that it leaves behind may hold the pipe
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	t.Logf("%.1fs %s %s", time.Since(began).Seconds(), name, strings.Join(args, " "))
	return strings.TrimSpace(stdout.String())
}

// start starts a unit for the length of the test. Starting ends when the daemon
// says that it is ready; the units used here all do.
func start(t *testing.T, unit string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("journal:\n%s", run(t, "journalctl", "--no-pager", "--quiet", "-b", "-n", "60"))
		}
		run(t, "systemctl", "stop", unit)
	})
	run(t, "systemctl", "start", unit)
}

// share is start for a unit that several tests use at once: the last of them stops it. Who
// uses it has a lock on a file.
func share(t *testing.T, unit string) {
	t.Helper()
	uses, err := os.OpenFile(filepath.Join(os.TempDir(), "uses-"+unit), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		err = unix.Flock(int(uses.Fd()), unix.LOCK_SH)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if unix.Flock(int(uses.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			run(t, "systemctl", "stop", unit)
		}
		_ = uses.Close()
	})
	run(t, "systemctl", "start", unit)
}

// A sharedLog is what a program that runs has said.
type sharedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *sharedLog) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *sharedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
