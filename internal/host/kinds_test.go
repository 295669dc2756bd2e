package host

import (
	"slices"
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// Each kind of target is described, and nothing else is.
func TestKindsAreDescribed(t *testing.T) {
	h := opened(t, cgroupfs.V2, nil, Options{})
	var made, described []string
	for _, k := range h.Kinds(nil) {
		made = append(made, k.Name())
	}
	for _, d := range targets.Descriptions() {
		described = append(described, d.Name)
		if got, ok := targets.KindOf(d.Name + ":x"); !ok || got != d {
			t.Errorf("%s:x is %+v", d.Name, got)
		}
	}
	slices.Sort(made)
	slices.Sort(described)
	if !slices.Equal(made, described) {
		t.Errorf("there are the kinds %q, and described are %q", made, described)
	}
	for _, other := range []string{"", "docker", "frob:x", ":x", "/unit:x"} {
		if got, ok := targets.KindOf(other); ok {
			t.Errorf("%q is %+v", other, got)
		}
	}
}
