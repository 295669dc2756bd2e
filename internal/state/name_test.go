package state

import (
	"net/url"
	"strings"
	"testing"
)

// A target's name can be as long as a path of cgroups, and of any bytes.
func TestFileName(t *testing.T) {
	long := "cgroup:/" + strings.Repeat("/"+strings.Repeat("ü", 125), 16)
	seen := map[string]string{}
	for _, target := range []string{"docker:web", "cgroup:/../x", "cgroup:/\xff\n", long, long + "2", "cgroup:/" + strings.Repeat("a", 239), "cgroup:/" + strings.Repeat("a", 238)} {
		name := FileName(target)
		if len(name+Ready) > 255 || len(name+locked) > 255 || strings.ContainsAny(name, "/\n\x00") || name[0] == '.' || !strings.HasPrefix(name, target[:strings.IndexByte(target, ':')]+"%3A") {
			t.Errorf("FileName(%.30q) = %q", target, name)
		}
		if other, is := seen[name]; is {
			t.Errorf("%.30q and %.30q have one name", target, other)
		}
		seen[name] = target
	}
	for _, target := range []string{"docker:web", "cgroup:/" + strings.Repeat("a", 238)} { // 250 bytes: the longest that older weirs could save
		if got := FileName(target); got != url.QueryEscape(target) {
			t.Errorf("FileName = %q; it has always been %q", got, url.QueryEscape(target))
		}
	}
	for _, long := range []string{"cgroup:/" + strings.Repeat("a", 300)} {
		forged, err := url.QueryUnescape(FileName(long))
		if err != nil || FileName(forged) == FileName(long) {
			t.Errorf("%q takes the file of another (%v)", forged, err)
		}
	}
}
