package kills_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// full returns a pipe that nothing more can be written to until it is read.
func full(t *testing.T) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	for page := make([]byte, 4096); ; {
		if _, err := unix.Write(fds[1], page); errors.Is(err, unix.EAGAIN) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, fd := range fds {
		if err := unix.SetNonblock(fd, false); err != nil {
			t.Fatal(err)
		}
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe")
}

// A weir that gets a signal after it has made its group, and before it has started its
// command, removes the group itself. The test holds up its messages, so that it stays
// between the two.
func TestSignalBeforeTheCommand(t *testing.T) {
	lab.Need(t, lab.Root, lab.Newest, lab.NoSystemd)
	disk := lab.RawDisk(t)
	others := left(t) // on a host that weir is used on
	early := func(name string) bool { return strings.HasSuffix(name, "weir-early") }
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		// What the test was told to ignore, by nohup, weir would ignore too.
		signal.Notify(make(chan os.Signal, 1), s)
		defer signal.Reset(s)
		r, w := full(t)
		cmd := exec.Command("weir", "run", "--name", "early", "--write", "1MB/s", "--on", disk.Node, "--", "sleep", "600")
		cmd.Stderr = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		lab.Await(t, 20*time.Second, "weir's group", func() bool { return slices.ContainsFunc(lab.WeirGroups(t), early) })
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, r) // until weir has ended
		}()
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 128+int(s) {
			t.Errorf("after %v weir run ended with %v, want status %d", s, err, 128+int(s))
		}
		<-drained
		r.Close()
		names := slices.DeleteFunc(left(t), func(name string) bool { return slices.Contains(others, name) })
		if len(names) > 0 {
			t.Errorf("after %v %v are left", s, names)
		}
	}
}

// children lists the processes whose parent a process is.
func children(t *testing.T, parent int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, rest, _ := strings.Cut(string(text), " ")
		fields := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
		if n, err := strconv.Atoi(pid); err == nil && fields[0] != "Z" && fields[1] == strconv.Itoa(parent) {
			pids = append(pids, n)
		}
	}
	return pids
}

// kill -9 of the demo ends all its processes: the one in the mount namespace, and the
// load, whatever it waits for.
func TestKilledDemoEndsItsLoad(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.Loop, lab.Command("mkfs.ext4"), lab.FS("ext4"), lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	cmd := exec.Command("weir", "demo", "--quiet", "--for", "10m", "--dir", disk.Dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var inner, load []int
	lab.Await(t, 20*time.Second, "the demo's load", func() bool {
		if inner = children(t, cmd.Process.Pid); len(inner) == 1 {
			load = children(t, inner[0])
		}
		return len(load) == 1 && strings.Contains(arguments(load[0]), "__load")
	})
	// A load that is stopped cannot notice that nobody reads its reports any more.
	if err := unix.Kill(load[0], unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = unix.Kill(load[0], unix.SIGKILL)
		}
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	lab.Await(t, 10*time.Second, "the end of the load", func() bool {
		return arguments(inner[0]) == "" && arguments(load[0]) == ""
	})
	lab.Await(t, 10*time.Second, "the next weir to clean up", func() bool {
		groups(t)
		return len(left(t)) == 0
	})
}

// arguments returns a process's command line, or "" if it has ended.
func arguments(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	return string(text)
}
