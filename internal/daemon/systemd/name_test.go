package systemd

import (
	"errors"
	"path"
	"strings"
	"testing"
)

func TestFullNames(t *testing.T) {
	for name, want := range map[string]string{
		"nginx": "nginx.service", "nginx.service": "nginx.service", "a.b": "a.b.service", "web@1": "web@1.service",
		"-.slice": "-.slice", "run-u1.scope": "run-u1.scope", `dev-disk-by\x2duuid.swap`: `dev-disk-by\x2duuid.swap`,
		"docker.socket": "docker.socket", "..": "...service", strings.Repeat("x", 247): strings.Repeat("x", 247) + ".service",
	} {
		if got, err := FullName(name); got != want || err != nil {
			t.Errorf("FullName(%q) = %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"", ".service", "a/b", "../x", "a b", "a\nb", "a\x00b", "größe", "web@", "web@.service", "@x", "x.timer", "x.target",
		strings.Repeat("x", 248), strings.Repeat("x", 300), "a\xffb"} {
		got, err := FullName(name)
		var refused *NameError
		if !errors.As(err, &refused) || got != "" || strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 300 {
			t.Errorf("FullName(%q) = %q, %v; want a *NameError of one line", name, got, err)
		}
	}
}

// No name becomes a path that leaves its folder, or is two elements of one.
func FuzzFullNameStaysOneElement(f *testing.F) {
	for _, name := range []string{"nginx", "..", "../x", "a/../../b", "/", "x@../y", "a\n", "-.slice"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		full, err := FullName(name)
		if err != nil {
			return
		}
		if path.Base(full) != full || full == ".." || full == "." || path.Join("/a", full) != "/a/"+full || len(full) > nameMax || strings.ContainsAny(full, "/\n\x00 ") {
			t.Errorf("FullName(%q) = %q", name, full)
		}
		if again, err := FullName(full); again != full || err != nil {
			t.Errorf("FullName(%q) = %q, %v", full, again, err)
		}
	})
}
