package state

import (
	"strings"
	"testing"
)

// A target's name can be as long as a path of cgroups, and of any bytes.
func TestFileName(t *testing.T) {
	long := "cgroup:/" + strings.Repeat("/"+strings.Repeat("ü", 125), 16)
	seen := map[string]string{}
	for _, target := range []string{"docker:web", "cgroup:/../x", "cgroup:/\xff\n", long, long + "2", "cgroup:/" + strings.Repeat("a", 229), "cgroup:/" + strings.Repeat("a", 228)} {
		name := FileName(target)
		if len(name) > nameMost || strings.ContainsAny(name, "/\n\x00") || name[0] == '.' || !strings.HasPrefix(name, target[:strings.IndexByte(target, ':')]+"%3A") {
			t.Errorf("FileName(%.30q) = %q", target, name)
		}
		if other, is := seen[name]; is {
			t.Errorf("%.30q and %.30q have one name", target, other)
		}
		seen[name] = target
	}
	if got := FileName("docker:web"); got != "docker%3Aweb" { // as it has always been
		t.Errorf("FileName = %q", got)
	}
}
