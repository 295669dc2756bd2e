package kubelet

import (
	"slices"
	"strings"
	"testing"
)

// What is built is of the version that the module requires, and another version, another sum or another
// compiler is another entry of the cache.
func TestModule(t *testing.T) {
	s, err := read(t.Context(), "../../../tools/kubelet")
	if err != nil {
		t.Fatal(err)
	}
	if args := strings.Join(s.args(), " "); !strings.Contains(args, "version.gitVersion="+s.version+" ") || !strings.Contains(args, "version.gitMajor=1 ") {
		t.Errorf("it is built with %s", args)
	}
	if !strings.Contains(s.sum, "k8s.io/kubernetes "+s.version+" h1:") {
		t.Errorf("go.sum has not %s", s.version)
	}
	for what, change := range map[string]func(*source){
		"version":  func(s *source) { s.version = "v1.2.3" },
		"go.mod":   func(s *source) { s.mod += "\n" },
		"go.sum":   func(s *source) { s.sum += "\n" },
		"compiler": func(s *source) { s.compiler = "go1.1" },
	} {
		other := s
		change(&other)
		if slices.Equal(other.recipe(), s.recipe()) {
			t.Errorf("another %s is the same recipe", what)
		}
	}
}

func TestVersion(t *testing.T) {
	if got, err := versionIn("module x\n\nrequire k8s.io/kubernetes v1.37.2\n"); err != nil || got != "v1.37.2" {
		t.Errorf("%q, %v", got, err)
	}
	for _, mod := range []string{"", "require k8s.io/kubernetes v1.38.0-alpha.1\n", "require k8s.io/kubernetes/x v1.2.3\n"} {
		if got, err := versionIn(mod); err == nil {
			t.Errorf("%q has %s", mod, got)
		}
	}
}
