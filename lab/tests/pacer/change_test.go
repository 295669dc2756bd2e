package pacer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// sleeper puts a process into groups.
func sleeper(t *testing.T, groups ...string) {
	t.Helper()
	script := ""
	for _, g := range groups {
		script += "echo $$ > " + g + "/cgroup.procs; "
	}
	cmd := exec.Command("sh", "-c", script+"exec sleep 600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	pid := fmt.Sprint(cmd.Process.Pid)
	for _, g := range groups {
		lab.Await(t, 20*time.Second, "a process in "+g, func() bool {
			text, err := os.ReadFile(g + "/cgroup.procs")
			return err == nil && strings.Contains("\n"+string(text), "\n"+pid+"\n")
		})
	}
}

// The pacer continues at the new rate until --hold kernel ends it, and weir's statements are
// true at each step.
func TestHoldKernelEndsThePacer(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1)
	disk := lab.RawDisk(t)
	group := filepath.Join(e.Cgroups.Blkio, "lab-change")
	lab.Cgroup(t, group)
	sleeper(t, group)
	for _, step := range []struct {
		flags []string
		paced string // as weir show has it; empty: not
		said  string
	}{
		{[]string{"--write", "2000000", "--hold", "pacer"}, "paced at 2 MB/s by weir's pacer", "buffered writes by weir's pacer"},
		{[]string{"--write", "3000000"}, "paced at 3 MB/s by weir's pacer", "buffered writes by weir's pacer"},
		{[]string{"--read", "3000000"}, "paced at 3 MB/s by weir's pacer", "weir's pacer pauses"},
		{[]string{"--write", "4000000", "--hold", "kernel"}, "", "expected NOT to hold: buffered writes"},
	} {
		said := weir(t, append([]string{"set", "cgroup:/lab-change", "--on", disk.Number.String()}, step.flags...)...)
		if !strings.Contains(said, step.said) {
			t.Errorf("weir set %s said %q, want %q", step.flags, said, step.said)
		}
		if shown := weir(t, "show", "cgroup:/lab-change", "--for", "0"); strings.Contains(shown, "pacer") != (step.paced != "") || !strings.Contains(shown, step.paced) {
			t.Errorf("after weir set %s, weir show said %q, want %q", step.flags, shown, step.paced)
		}
	}
}

// If the pacer cannot start, the limit stays as it was.
func TestAPacerThatFailsLeavesTheLimit(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1)
	disk := lab.RawDisk(t)
	group := filepath.Join(e.Cgroups.Blkio, "lab-fails")
	lab.Cgroup(t, group)
	sleeper(t, group)
	run := refusing(t)
	set := func(flags ...string) (said string, err error) {
		// The answer comes from a directory of records of its own.
		args := append([]string{"-c", `mount -o bind "$0" /run/weir && exec weir "$@"`, run, "set", "cgroup:/lab-fails", "--on", disk.Number.String()}, flags...)
		cmd := exec.Command("sh", args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if said, err := set("--write", "2000000", "--hold", "kernel"); err != nil {
		t.Fatalf("weir set --hold kernel: %v\n%s", err, said)
	}
	if said, err := set("--write", "5000000", "--hold", "pacer"); err == nil || !strings.Contains(said, "this pacer refuses") {
		t.Errorf("weir set --hold pacer: %v\n%s", err, said)
	}
	rule := func() string {
		text, err := os.ReadFile(group + "/blkio.throttle.write_bps_device")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if now := rule(); !strings.HasSuffix(now, " 2000000\n") {
		t.Errorf("the limit was 2000000, and is %q", now)
	}
	// Nobody has asked for the pacer here: it is left out, and that is said.
	if said, err := set("--write", "6000000"); err != nil || !strings.Contains(said, "warning: ") || !strings.Contains(said, "expected NOT to hold: buffered writes") {
		t.Errorf("weir set said %q, %v", said, err)
	}
	if now := rule(); !strings.HasSuffix(now, " 6000000\n") {
		t.Errorf("the limit is %q", now)
	}
}

// refusing gives a directory for records in which a pacer answers that refuses all it is asked.
func refusing(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o700), os.MkdirAll("/run/weir", 0o700)); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "pacer.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	go func() {
		for {
			conn, err := socket.Accept()
			if err != nil {
				return // closed
			}
			var asked any
			if json.NewDecoder(conn).Decode(&asked) == nil {
				_, _ = conn.Write([]byte(`{"error":"this pacer refuses"}`))
			}
			_ = conn.Close()
		}
	}()
	return dir
}
