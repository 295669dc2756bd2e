package host_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// A process that has moved since it was found, or has ended, is not limited by its old group.
func TestLock(t *testing.T) {
	for name, c := range map[string]struct {
		cgroup string // where the process is by then
		fails  string
	}{
		"there": {"0::/batch\n", ""},
		"moved": {"0::/alone\n", "pid:4711 has just been moved from cgroup /batch to /alone; try again"},
	} {
		files := map[string]string{"proc/4711/cgroup": c.cgroup}
		h := hosttest.Open(t, "v2", files, host.Options{})
		io, err := h.IO()
		if err != nil {
			t.Fatal(err)
		}
		batch, err := io.Group("/batch")
		if err != nil {
			t.Fatal(err)
		}
		its := targets.Target{Kind: "pid", Name: "4711", PID: 4711, Group: batch}
		if _, err := h.Lock(t.Context(), its); !fault.IsUnsupported(err) {
			t.Errorf("%s: a copy is locked: %v", name, err)
		}
		hosttest.Rehearse(t, h)
		locked, err := h.Lock(t.Context(), its)
		switch {
		case c.fails == "" && err != nil, c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v", name, err)
		case err == nil:
			locked.Unlock()
		}
		its.PID = 1 << 30
		var gone *targets.NotFound
		if _, err := h.Lock(t.Context(), its); !errors.As(err, &gone) {
			t.Errorf("%s: a process that has ended: %v", name, err)
		}
		// A refused lock is not held.
		its.PID = 0
		if locked, err = h.Lock(t.Context(), its); err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			locked.Unlock()
		}
	}
}

func TestDevices(t *testing.T) {
	h := hosttest.Open(t, "v2", nil, host.Options{})
	vda, vdb := blkdev.Number{Major: 254}, blkdev.Number{Major: 254, Minor: 16}
	got, err := h.DevicesOf(t.Context(), []string{"/data", "vda1", "/"})
	if err != nil || !slices.Equal(got, []blkdev.Number{vdb, vda, vda}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := h.DevicesOf(t.Context(), []string{"/data", "/none"}); err == nil {
		t.Error("a place that is not there has a device")
	}
	if d := h.Device(t.Context(), vdb); d.Node != "/dev/vdb" || d.Number != vdb {
		t.Errorf("%+v", d)
	}
	gone := blkdev.Number{Major: 8, Minor: 3}
	if d := h.Device(t.Context(), gone); d.Node != "8:3" || d.Name != "8:3" || d.Number != gone {
		t.Errorf("%+v", d)
	}
}

// A unit can have the path of weir only if no character of it ends a line.
func TestProgram(t *testing.T) {
	broken := errors.New("no /proc")
	for name, c := range map[string]struct {
		program func() (string, error)
		want    string
		fails   string
	}{
		"known":   {func() (string, error) { return "/usr/bin/weir", nil }, "/usr/bin/weir", ""},
		"unknown": {func() (string, error) { return "", broken }, "", "find weir itself: no /proc"},
		"strange": {func() (string, error) { return "/a\nb", nil }, "/a\nb", "the path of weir itself"},
		"none":    {nil, "", "find weir itself"},
	} {
		got, err := hosttest.Open(t, "v2", nil, host.Options{Program: c.program}).Program()
		if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// The parts of a host are of that host.
func TestParts(t *testing.T) {
	h := hosttest.Open(t, "v2", nil, host.Options{})
	if h.Launch().FS != h.FS || h.Deciding().Root != h.Root || h.Volumes(nil).IO != nil || h.Holder().State != h.State || h.SystemdRuns() {
		t.Errorf("%+v", h)
	}
	if job, err := h.JobOf(cgroupfs.Group{}); job != nil || err != nil {
		t.Errorf("a copy is paced: %+v, %v", job, err)
	}
	if _, err := h.Kernel().Release(); err == nil {
		t.Error("the copy has no release, and one is read")
	}
}

// What cannot be asked has no names, and no reader that could be used by mistake.
func TestACopyHasNoDaemons(t *testing.T) {
	h := hosttest.Open(t, "v2", nil, host.Options{})
	for _, kind := range []string{"unit", "docker", "podman", "containerd", "pod", "vm"} {
		if names := h.Live(t.Context(), kind, ""); len(names) > 0 {
			t.Errorf("%s: %q", kind, names)
		}
	}
	s, err := h.WhySources()
	if err != nil {
		t.Fatal(err)
	}
	if owners, err := s.Owners(); err == nil || owners != nil {
		t.Errorf("the kernel of a copy tells whose files are: %v, %v", owners, err)
	}
	if _, again := h.Owners(); again == nil {
		t.Error("asked again, it does")
	}
}
