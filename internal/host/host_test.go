package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/targets"
)

// opened is a host of files, opened as a copy of a machine.
func opened(t *testing.T, version cgroupfs.Version, files map[string]string, o Options) *Host {
	t.Helper()
	o.Root = cgrouptest.New(t, version, files).Root
	h, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

const batch = cgrouptest.V2Dir + "/batch/"

func v2Batch() map[string]string {
	return map[string]string{batch + "cgroup.procs": "4711\n", batch + "cgroup.controllers": "io\n", batch + "io.max": "", batch + "cgroup.type": "domain\n",
		cgrouptest.V2Dir + "/cgroup.procs": "1\n", "proc/4711/cgroup": "0::/batch\n", "proc/4711/comm": "dd\n", "proc/4711/cmdline": "dd\x00",
		"proc/47/comm": "kworker\n", "proc/47/cmdline": ""}
}

// listing is every file below a directory, with its content.
func listing(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text := ""
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(data)
		}
		all[path] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Opening a copy of a machine, sweeping it and finding its targets change nothing.
func TestACopyStaysAsItIs(t *testing.T) {
	fixture := cgrouptest.New(t, cgroupfs.V2, v2Batch())
	before := listing(t, fixture.Root)
	h, err := Open(Options{Root: fixture.Root})
	if err != nil {
		t.Fatal(err)
	}
	if h.IsOwn() {
		t.Error("a copy is taken for the machine itself")
	}
	if err := h.Sweep(); err != nil {
		t.Error(err)
	}
	found, err := h.Target(context.Background(), "pid:4711")
	if err != nil || found.Group.Path() != "/batch" || found.PID != 4711 {
		t.Errorf("pid:4711 is %+v, %v", found, err)
	}
	if err := errors.Join(h.Refresh(), h.Close()); err != nil {
		t.Error(err)
	}
	after := listing(t, fixture.Root)
	for path, text := range after {
		if was, there := before[path]; !there || was != text {
			t.Errorf("%s was %q and is %q", path, was, text)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
}

func TestTargetsOfBothKindsOfErrors(t *testing.T) {
	h := opened(t, cgroupfs.V2, v2Batch(), Options{})
	var notFound *targets.NotFound
	if _, err := h.Target(context.Background(), "cgroup:/none"); !errors.As(err, &notFound) {
		t.Errorf("an unknown group: %v", err)
	}
	var misspelt *targets.NameError
	if _, err := h.Target(context.Background(), "pid:x"); !errors.As(err, &misspelt) {
		t.Errorf("a pid that is none: %v", err)
	}
	var none *fault.Unsupported
	without := opened(t, cgroupfs.V2, v2Batch(), Options{Version: cgroupfs.V1})
	if _, err := without.Target(context.Background(), "cgroup:/batch"); !errors.As(err, &none) {
		t.Errorf("a version that is not mounted: %v", err)
	}
}

// A hierarchy that is mounted later is found by Refresh, and not before.
func TestRefresh(t *testing.T) {
	fixture := cgrouptest.New(t, cgroupfs.V2, v2Batch())
	h, err := Open(Options{Root: fixture.Root})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	fixture.Write("proc/1/mountinfo", "30 23 0:26 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n")
	fixture.Write(cgrouptest.V1Dir+"/tasks", "")
	if io, err := h.IO(); err != nil || io.Version != cgroupfs.V2 {
		t.Errorf("before Refresh: %v, %v", io, err)
	}
	if err := h.Refresh(); err != nil {
		t.Fatal(err)
	}
	if io, err := h.IO(); err != nil || io.Version != cgroupfs.V1 {
		t.Errorf("after Refresh: %v, %v", io, err)
	}
}

// With changes one socket of another Host, and none of the first.
func TestWith(t *testing.T) {
	h := opened(t, cgroupfs.V2, v2Batch(), Options{Sockets: map[string]string{"docker": "unix:///a", "pod": "unix:///p"}})
	other := h.With("docker", "unix:///b")
	for _, c := range []struct{ got, want string }{
		{h.Socket("docker"), "unix:///a"}, {other.Socket("docker"), "unix:///b"}, {other.Socket("pod"), "unix:///p"}, {h.Socket("podman"), ""},
		{h.With("docker", "").Socket("docker"), ""},
	} {
		if c.got != c.want {
			t.Errorf("the socket is %q, want %q", c.got, c.want)
		}
	}
	if got := opened(t, cgroupfs.V2, nil, Options{}).With("docker", "unix:///b").Socket("docker"); got != "unix:///b" {
		t.Errorf("without sockets: %q", got)
	}
}

func TestLive(t *testing.T) {
	h := opened(t, cgroupfs.V2, v2Batch(), Options{})
	for _, c := range []struct {
		kind, prefix string
		want         []string
	}{
		{"pid", "47", []string{"4711\tdd"}}, // the other has no memory of its own
		{"pid", "5", nil},
		{"cgroup", "", []string{"/batch"}},
		{"cgroup", "/b", []string{"/batch"}},
		{"cgroup", "/c", nil},
		{"unit", "", nil}, // a copy's systemd cannot be asked
		{"none", "", nil},
	} {
		if got := h.Live(context.Background(), c.kind, c.prefix); !slices.Equal(got, c.want) {
			t.Errorf("%s:%s: %q, want %q", c.kind, c.prefix, got, c.want)
		}
	}
}

// A host without a controller of disk I/O is a finding.
func TestWhySources(t *testing.T) {
	s, err := opened(t, cgroupfs.V2, v2Batch(), Options{}).WhySources()
	if err != nil || s.Hierarchy == nil || s.UnitLimits != nil || s.SystemdRuns {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = opened(t, cgroupfs.V2, v2Batch(), Options{Version: cgroupfs.V1}).WhySources()
	if err != nil || s.Hierarchy != nil || !fault.IsUnsupported(s.WhyNone) {
		t.Errorf("a host without a controller is a finding: %+v, %v", s, err)
	}
}
