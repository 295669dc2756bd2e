package targets

import (
	"os"
	"path"
	"strings"
	"testing"
)

// groupsLeast is how many groups there are at least.
const groupsLeast = 40

// TestGroupsOfEngines knows the groups that engines and runtimes make.
func TestGroupsOfEngines(t *testing.T) {
	text, err := os.ReadFile("testdata/groups.tsv")
	if err != nil {
		t.Fatal(err)
	}
	groups := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) != 5 {
			t.Fatalf("%q has %d fields", line, len(fields))
		}
		groups++
		name, group, of, id, pod := fields[0], fields[1], fields[2], fields[3], fields[4]
		got := "-"
		if kind, whole, ok := container(strings.Split(strings.Trim(group, "/"), "/")); ok {
			got = kind + ":" + whole
		}
		if got != of {
			t.Errorf("%s (%s): the container %s, want %s", name, group, got, of)
		}
		if got := CalledAfter(group); got != id {
			t.Errorf("%s (%s): called after %s, want %s", name, group, got, id)
		}
		if IsContainerID(id) && !IsCalledAfter(group, id) {
			t.Errorf("%s (%s): not called after %s", name, group, id)
		}
		found := false
		for at := group; at != "/"; at = path.Dir(at) {
			found = found || pod != "-" && IsPodOf(at, pod)
			if IsPodOf(at, "00000000-0000-0000-0000-000000000000") {
				t.Errorf("%s: %s is any pod's", name, at)
			}
		}
		if found != (pod != "-") {
			t.Errorf("%s (%s): in pod %s: %v", name, group, pod, found)
		}
	}
	if groups < groupsLeast {
		t.Errorf("%d groups", groups)
	}
}
