package host

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets"
)

// Each kind lists what runs of it; a daemon that is not there has nothing.
func TestList(t *testing.T) {
	id := strings.Repeat("3f", 32)
	socket := sockettest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/containers/json") {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, `[{"Id": %q, "Names": ["/web"], "Labels": {"tier": "gold"}}]`, id)
	})
	files := v2Batch()
	files["run/libvirt/qemu/alpine.pid"] = "5\n"
	h := opened(t, cgroupfs.V2, files, Options{})
	for kind, want := range map[string][]string{"docker": nil, "podman": nil, "containerd": nil, "pod": nil, "unit": nil, "frob": nil, "vm": {"alpine"}} {
		all, err := h.List(t.Context(), kind, targets.Need{})
		var names []string
		for _, one := range all {
			names = append(names, one.Name)
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%s: %+v, %v; want %q", kind, all, err, want)
		}
		if kind == "frob" || kind == "vm" {
			continue
		}
		if live := h.Live(t.Context(), kind, ""); len(live) != 0 {
			t.Errorf("%s completes to %q", kind, live)
		}
	}
	all, err := h.With("docker", "unix://"+socket).List(t.Context(), "docker", targets.Need{})
	if err != nil || len(all) != 1 || all[0].Kind != "docker" || all[0].ID != id || all[0].Labels["tier"] != "gold" || !slices.Equal(all[0].Names, []string{"web"}) {
		t.Errorf("docker: %+v, %v", all, err)
	}
	if got := named("vm", []string{"a"}); len(got) != 1 || got[0].Name != "a" || !slices.Equal(got[0].Names, []string{"a"}) || got[0].Kind != "vm" {
		t.Errorf("named: %+v", got)
	}
	if conn := h.unitManager(); conn != nil {
		t.Error("a copy's systemd is asked here")
	}
}

// What the pacer was asked for a group is on record. A copy of a machine has no pacer.
func TestJobOf(t *testing.T) {
	h := opened(t, cgroupfs.V2, v2Batch(), Options{})
	io, err := h.IO()
	if err != nil {
		t.Fatal(err)
	}
	group, err := io.Group("/batch")
	if err != nil {
		t.Fatal(err)
	}
	job := pacer.Job{Limited: pacer.PlaceOf(group, "blkio"), Devices: []blkdev.Number{{Major: 8}}, WBPS: 7}
	dir := state.At(t.TempDir())
	record, err := dir.New("pace", job)
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Leave(); err != nil {
		t.Fatal(err)
	}
	if got, err := h.JobOf(group); err != nil || got != nil {
		t.Errorf("a copy: %+v, %v", got, err)
	}
	own := &Host{Root: "/", FS: h.FS, State: dir, runs: func() bool { return true }}
	if got, err := own.JobOf(group); err != nil || got == nil || got.WBPS != 7 {
		t.Errorf("a group that is paced: %+v, %v", got, err)
	}
	if got, err := own.JobOf(io.Root()); err != nil || got != nil {
		t.Errorf("another: %+v, %v", got, err)
	}
}

// The stores of a host have their places, and what cannot be limited says why.
func TestStores(t *testing.T) {
	h := opened(t, cgroupfs.V2, v2Batch(), Options{})
	if q := h.Quotas(); q.Dir != quota.Dir || q.Names != "/etc/projid" {
		t.Errorf("quotas: %+v", q)
	}
	io, err := h.IO()
	if err != nil {
		t.Fatal(err)
	}
	v := h.Volumes(io)
	if v.IO != io || v.Dir == "" || v.State != h.State {
		t.Errorf("volumes: %+v", v)
	}
	if err := v.Undo(); err != nil {
		t.Errorf("undo: %v", err)
	}
	var kinds []string
	for _, k := range h.Kinds(io) {
		kinds = append(kinds, k.Name())
	}
	for _, d := range targets.Descriptions() {
		if !slices.Contains(kinds, d.Name) {
			t.Errorf("kind %s is not there", d.Name)
		}
	}
	if _, err := h.Target(t.Context(), "cgroup:/batch"); err != nil {
		t.Error(err)
	}
}
