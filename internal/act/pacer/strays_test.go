package pacer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

var versions = map[string]cgroupfs.Version{"v1": cgroupfs.V1, "v2": cgroupfs.V2}

// A cell that is empty, and of no group on record, is removed by the next weir. One that is somebody's stays, and
// so does what only looks like one.
func TestStrays(t *testing.T) {
	for version, v := range versions {
		for name, c := range map[string]struct {
			group string
			old   bool
			full  bool // of a process
			inner bool // with a group in it
			gone  bool
		}{
			"empty":                  {group: "/a/weir-pace-0123abcd", old: true, gone: true},
			"at the top":             {group: "/weir-pace-0123abcd", old: true, gone: true},
			"far below":              {group: "/a/b/c/weir-pace-0123abcd", old: true, gone: true},
			"with a process":         {group: "/a/weir-pace-0123abcd", old: true, full: true},
			"with a group":           {group: "/a/weir-pace-0123abcd", old: true, inner: true},
			"young":                  {group: "/a/weir-pace-0123abcd"},
			"on record":              {group: "/a/own", old: true},
			"one that has no number": {group: "/a/weir-pace-mine", old: true},
			"another group":          {group: "/a/weir", old: true},
		} {
			h := newHost(t, v)
			if _, err := h.dir.NewOf(recordKind, h.job().Limited.String(), h.job()); err != nil {
				t.Fatal(err)
			}
			markCells(h.dir) // a pacer has run here
			dir := h.group(c.group)
			if c.group == "/a/own" {
				dir = h.cell("/a")
			}
			h.fill(filepath.Dir(dir))
			h.fill(dir)
			if c.full {
				h.fill(filepath.Join(h.Root, h.trees[0], c.group)) // where v1 limits it
				h.sleeper(c.group)
			}
			if c.inner {
				h.fill(filepath.Join(dir, "own"))
			}
			if was := time.Now().Add(-time.Minute); c.old {
				if err := os.Chtimes(dir, was, was); err != nil {
					t.Fatal(err)
				}
			}
			if err := Sweep(h.dir, h.FS); err != nil {
				t.Errorf("%s, %s: %v", version, name, err)
			}
			if _, err := os.Stat(dir); os.IsNotExist(err) != c.gone {
				t.Errorf("%s, %s: gone: %t, want %t", version, name, os.IsNotExist(err), c.gone)
			}
		}
	}
}

// Where the records are lost, and nothing says that a pacer has run, those at the top of v1's freezer are found.
func TestStraysWithoutAnyRecord(t *testing.T) {
	h := newHost(t, cgroupfs.V1)
	top, below := h.group("/weir-pace-0123abcd"), h.group("/a/weir-pace-4567cdef")
	for _, dir := range []string{top, below} {
		h.fill(dir)
		was := time.Now().Add(-time.Minute)
		if err := os.Chtimes(dir, was, was); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(h.dir, h.FS); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{top, below} {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left (%v)", dir, err)
		}
	}
}

// A pacer that takes over removes cells of a dead one that have no processes any more, as it would its own.
func TestAnEmptyCellOutlivesItsPacer(t *testing.T) {
	for version, v := range versions {
		h := newHost(t, v)
		h.sleeper("/a")
		empty := map[cgroupfs.Version]string{cgroupfs.V1: "/b", cgroupfs.V2: "/a/b"}[v] // on v1 its processes can be anywhere
		h.fill(h.group(empty))
		cells := []string{h.cell("/a"), h.cell(empty)}
		for _, dir := range cells {
			h.fill(dir)
		}
		r, err := h.dir.NewOf(recordKind, h.job().Limited.String(), h.job())
		if err == nil {
			err = r.Leave()
		}
		if err != nil {
			t.Fatal(err)
		}
		s := h.server()
		s.adopt(func(Place) bool { return true })
		p := s.of(h.job().Limited)
		if p == nil {
			t.Fatalf("%s: the group is not taken over", version)
		}
		if err := s.drop(p); err != nil {
			t.Error(err)
		}
		for _, dir := range cells {
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("%s: %s is left (%v)", version, dir, err)
			}
		}
		s.askers.close()
	}
}

// A pacer that ends leaves a cell that is young, or whose process it could not move, and with it the mark by which the next
// weir looks for it again.
func TestStraysThatAreLeft(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	lock, err := h.dir.Own(lockName)
	if err != nil || lock == nil {
		t.Fatal(err)
	}
	lock.Unlock()
	dir := h.group("/a/weir-pace-0123abcd")
	h.fill(filepath.Dir(dir))
	h.fill(dir)
	if err := removeStrays(h.dir, h.FS); err != nil {
		t.Fatal(err)
	}
	was := time.Now().Add(-time.Minute)
	if err := os.Chtimes(dir, was, was); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(h.dir, h.FS); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is left (%v)", err)
	}
}
