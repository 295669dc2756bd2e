package pacer_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// The pacer is dead, and weird is broken, so that none can be started. weir clear removes limits all the same: one
// of two, with a warning that the other is held by the kernel alone, and the last. Nobody stays paused, or in a cell.
func TestClearWithABrokenWeird(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.Once)
	dir := weirAlone(t)

	freezer := freezerDir(t, e)
	const target = "cgroup:/lab-broken"
	group := filepath.Join(e.Cgroups.Blkio, "lab-broken")
	lab.Cgroup(t, group)
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	pid := cmd.Process.Pid
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(fmt.Sprint(pid)), 0); err != nil {
		t.Fatal(err)
	}
	disks := []*lab.TestDisk{lab.RawDisk(t), lab.RawDisk(t)}
	for _, disk := range disks {
		weir(t, "set", target, "--on", disk.Number.String(), "--write", "2000000", "--hold", "pacer")
	}
	cell := freezerOf(t, pid)
	if !strings.Contains(filepath.Base(cell), "weir-pace-") {
		t.Fatalf("it is in %s, and in no cell", cell)
	}

	// Killed one by one, the guards start another pacer.
	lab.Await(t, 20*time.Second, "the end of the pacer and its guards", func() bool {
		all := append(lab.Called(t, "__pacer"), lab.Called(t, "__guard")...)
		send(t, unix.SIGSTOP, all...)
		send(t, unix.SIGKILL, all...)
		return len(all) == 0
	})
	if err := os.WriteFile(filepath.Join(freezer, cell, "freezer.state"), []byte("FROZEN"), 0); err != nil {
		t.Fatal(err) // as if it was killed while they were paused
	}
	if err := os.WriteFile(filepath.Join(dir, "weird"), []byte("#!/bin/sh\necho it is broken >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	rules := func() string {
		text, err := os.ReadFile(filepath.Join(group, "blkio.throttle.write_bps_device"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const why = "buffered writes of cgroup:/lab-broken are not held any more: start the pacer: it ended at once (exit status 1): it is broken"
	if said := weir(t, "clear", target, "--on", disks[1].Number.String()); !strings.Contains(said, why+"\n") || rules() != disks[0].Number.String()+" 2000000\n" {
		t.Errorf("rules %q; it said\n%s\nwant %s", rules(), said, why)
	}
	state, err := os.ReadFile(filepath.Join(freezer, freezerOf(t, pid), "freezer.state"))
	if freezerOf(t, pid) == cell || err == nil && string(state) != "THAWED\n" || err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is in %s: %q, %v", freezerOf(t, pid), state, err)
	}
	if said := weir(t, "clear", target); rules() != "" || strings.Contains(said, "warning") {
		t.Errorf("rules %q; it said\n%s", rules(), said)
	}
	if left, err := filepath.Glob("/run/weir/pace.*"); err != nil || len(left) > 0 {
		t.Errorf("on record are %q, %v", left, err)
	}
}
