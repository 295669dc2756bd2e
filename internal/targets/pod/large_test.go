package pod

import (
	"maps"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// What a pod has of annotations and labels that nobody needs is passed over, of any size. One whose needed ones are too large
// is named, and keeps no other from being listed.
func TestPodsWithLargeAnnotations(t *testing.T) {
	huge := strings.Repeat("x", 3<<20)
	one := func(id, label, annotation string) known {
		return known{sandbox: sandbox{id: id, namespace: "prod", name: id, uid: "u-" + id, labels: map[string]string{"chart": huge, "tier": label},
			annotations: map[string]string{"chart": huge, "plan": annotation}}}
	}
	k := host(t, cgroupfs.V2, nil)
	k.Endpoint = "unix://" + runtimeOf(t, one("a", "gold", "small"), one("b", huge, ""), one("c", "", huge), one("d", "iron", "large"))
	k.Need.Label = func(name string) bool { return name == "tier" }
	k.Need.Annotation = func(name string) bool { return name == "plan" }
	all, err := k.List(t.Context())
	if err != nil || len(all) != 4 {
		t.Fatalf("%d, %v", len(all), err)
	}
	for i, want := range [][2]string{{"gold", "small"}, {}, {}, {"iron", "large"}} {
		got := all[i]
		if want == ([2]string{}) {
			if got.Labels != nil || got.Annotations != nil || got.Unread == nil ||
				got.Unread.Error() != got.String()+": weir cannot tell its plan, and leaves its limits as they are: the labels and annotations that its plan can depend on have more than 2 MiB" {
				t.Errorf("%s: %.300v", got.Name, got.Unread)
			}
			continue
		}
		if got.Unread != nil || !maps.Equal(got.Labels, map[string]string{"tier": want[0]}) || !maps.Equal(got.Annotations, map[string]string{"plan": want[1]}) {
			t.Errorf("%s: %v", got.Name, got.Unread)
		}
	}
}
