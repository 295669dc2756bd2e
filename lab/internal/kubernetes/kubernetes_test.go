package kubernetes

import (
	"slices"
	"strings"
	"testing"
)

// What is built is of the version that the module requires, and another version, another sum or another
// compiler is another entry of the cache.
func TestModule(t *testing.T) {
	s, err := kubelet.source(t.Context(), "../../../tools")
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
		if slices.Equal(other.recipe("x"), s.recipe("x")) {
			t.Errorf("another %s is the same recipe", what)
		}
	}
}

func TestVersion(t *testing.T) {
	for mod, want := range map[string]string{
		"module x\n\nrequire k8s.io/kubernetes v1.37.2\n": "v1.37.2",
		"require (\n\tk8s.io/kubernetes v1.37.2\n)\n":     "v1.37.2",
		"": "", "require k8s.io/kubernetes v1.38.0-alpha.1\n": "",
		"require k8s.io/kubernetes/x v1.2.3\n": "",
	} {
		if got := versionIn(mod); got != want {
			t.Errorf("%q has %q", mod, got)
		}
	}
}

// Each program that the lab gives guests is of a module that requires it.
func TestPrograms(t *testing.T) {
	for _, set := range sets {
		for _, p := range set {
			s, err := p.source(t.Context(), "../../../tools")
			if err != nil {
				t.Fatal(err)
			}
			host, rest, _ := strings.Cut(p.pkg, "/")
			owner, _, _ := strings.Cut(rest, "/")
			if !strings.Contains(s.sum, host+"/"+owner) {
				t.Errorf("%s: tools/%s has no %s", p.name, p.module, p.pkg)
			}
		}
	}
	if Is("prometheus") || !Is(Kubelet) || !Is(Cluster) || !Is(Containerd) || !Is(Containerd21) {
		t.Error("what the lab builds is not what guests are given")
	}
}
