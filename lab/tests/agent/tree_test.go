package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/lab"
)

// watches counts the inotify watches of this process, as the kernel has them.
func watches(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil { // the list's own is closed by now
			n += strings.Count(string(text), "inotify wd:")
		}
	}
	return n
}

// The kernel's cgroup file systems tell of births, ends and writes, and no watch is left of a group
// that has ended.
func TestTreeOnCgroups(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Once)
	mount, file := e.Cgroups.Blkio, "blkio.throttle.write_bps_device"
	if e.Cgroups.IOInV2 {
		mount, file = e.Cgroups.Unified, "io.max"
	}
	top := filepath.Join(mount, "weir-agent-test")
	lab.Cgroup(t, top)
	if e.Cgroups.IOInV2 {
		if err := os.WriteFile(filepath.Join(top, "cgroup.subtree_control"), []byte("+io"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	disk := lab.RawDisk(t)
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience(t, patience))
	defer cancel()
	followed, err := tree.Open(top, tree.Options{Files: []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	defer followed.Close()
	var seen []tree.Event
	expect := func(want tree.Event) {
		t.Helper()
		for !slices.Contains(seen, want) {
			events, err := followed.Next(ctx)
			if err != nil {
				t.Fatalf("%v: %v after %v", want, err, seen)
			}
			seen = append(seen, events...)
		}
		seen = nil
	}
	before := watches(t)
	var took []time.Duration
	for i := range 300 {
		name := fmt.Sprint("g", i)
		began := time.Now()
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
		expect(tree.Event{Kind: tree.Born, Path: name})
		took = append(took, time.Since(began))
		if i%100 == 0 {
			rule := disk.Number.String() + " 1000000"
			if e.Cgroups.IOInV2 {
				rule = disk.Number.String() + " wbps=1000000"
			}
			if err := os.WriteFile(filepath.Join(top, name, file), []byte(rule), 0o600); err != nil {
				t.Fatal(err)
			}
			expect(tree.Event{Kind: tree.Written, Path: name, File: file})
		}
		if err := os.Remove(filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
		expect(tree.Event{Kind: tree.Ended, Path: name})
	}
	if got := watches(t); got != before {
		t.Errorf("%d watches, before %d", got, before)
	}
	if events, err := followed.Resync(); err != nil || len(events) > 0 || followed.Stats() != (tree.Stats{}) {
		t.Errorf("%v, %v, %+v", events, err, followed.Stats())
	}
	slices.Sort(took)
	t.Logf("from mkdir to its event: p50 %v, p99 %v", took[len(took)/2], took[len(took)*99/100])
}
