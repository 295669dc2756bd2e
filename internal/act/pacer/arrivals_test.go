package pacer

import (
	"slices"
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// Who comes to a group is told to all limits that it is under, until each is forgotten.
func TestArrivalsUnderNestedLimits(t *testing.T) {
	file := cgrouptest.V2Dir + "/a/b/cgroup.procs"
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{file: ""})
	a := newArrivals()
	defer a.close()
	outer, inner := &roster{limited: h.Group("/a")}, &roster{limited: h.Group("/a/b")}
	come := func(want ...*roster) {
		t.Helper()
		h.Write(file, "1\n")
		got := a.read()
		for _, r := range []*roster{outer, inner} {
			if slices.Contains(got, r) != slices.Contains(want, r) {
				t.Errorf("%s is told: %v", r.limited.Path(), !slices.Contains(want, r))
			}
		}
	}
	a.watch(outer, h.Group("/a/b"))
	a.watch(inner, h.Group("/a/b"))
	come(outer, inner)
	a.forget(outer)
	come(inner)
	a.watch(outer, h.Group("/a/b"))
	come(outer, inner)
	a.forget(inner)
	a.forget(outer)
	come()
}
