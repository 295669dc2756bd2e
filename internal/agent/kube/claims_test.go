package kube

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/lab"
)

// The claims that are followed are bounded, and a pod that is past the bound is told so.
func TestManyClaims(t *testing.T) {
	lab.Unit(t)
	c := New(nil, "n", true, agent.ClusterOptions{Changed: func(string, string) {}, Pods: func() []agent.PodState { return nil }})
	started, ended := 0, 0
	c.claims.start = func(*follower) func() { started++; return func() { ended++ } }
	set := func(pod string, claims int) {
		var o object
		var names []string
		for i := range claims {
			names = append(names, fmt.Sprint(pod, i))
		}
		if err := json.Unmarshal([]byte(podWith("1", pod, names...)), &o); err != nil {
			t.Fatal(err)
		}
		c.setPod(o)
	}
	set("a", claimsMost-1)
	set("b", 3)
	if started != claimsMost || c.wrongVolume(c.pods["u-a"]) != nil || c.wrongVolume(c.pods["u-b"]) == nil {
		t.Errorf("%d are followed; %v", started, c.wrongVolume(c.pods["u-b"]))
	}
	c.keepPods(func(string) bool { return false })
	if ended != claimsMost || len(c.claims.following) != 0 {
		t.Errorf("%d of %d end", ended, started)
	}
}

// Claims that there was no place for are followed when others go, those of the pod that came first before others;
// names past a bound are not kept, and count when their pod changes.
func TestClaimsWaitForAPlace(t *testing.T) {
	lab.Unit(t)
	c := New(nil, "n", true, agent.ClusterOptions{Changed: func(string, string) {}, Pods: func() []agent.PodState { return nil }})
	started := map[string]int{}
	c.claims.start = func(f *follower) func() {
		started[strings.TrimPrefix(f.selector.Get("fieldSelector"), "metadata.name=")]++
		return func() {}
	}
	read := func(text string) (o object) {
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	pod := func(version, name string, claims int) object {
		var names []string
		for i := range claims {
			names = append(names, fmt.Sprint(name, "-", i))
		}
		return read(podWith(version, name, names...))
	}
	waiting := func(pod string) bool { return c.wrongVolume(c.pods["u-"+pod]) != nil }
	c.setPod(pod("1", "a", claimsMost-1))
	c.setPod(pod("2", "b", 3))
	c.setPod(pod("3", "c", 3))
	if len(started) != claimsMost || !waiting("b") || !waiting("c") {
		t.Fatalf("%d are followed; b waits: %t, c waits: %t", len(started), waiting("b"), waiting("c"))
	}
	if c.setClaim("prod", "b-2", read(claimOf("4", "b-2", "pvc-2"))); c.pods["u-b"].claims[2].volume != "" {
		t.Error("a claim that waits has a volume")
	}
	c.endPod(pod("5", "a", 0))
	if waiting("b") || waiting("c") || started["b-2"] != 1 || started["c-2"] != 1 || len(c.claims.following) != 6 {
		t.Errorf("%d are followed; b waits: %t, c waits: %t", len(c.claims.following), waiting("b"), waiting("c"))
	}

	// The pods that came first have the places.
	c.setPod(pod("6", "d", claimsMost))
	c.setPod(pod("7", "e", 4))
	c.endPod(pod("8", "b", 0))
	if started[fmt.Sprint("d-", claimsMost-4)] != 1 || started["e-0"] != 0 || !waiting("d") || !waiting("e") {
		t.Error("the places of b are not those of d alone")
	}

	// Names are bounded too: those of the last pod are noted when it changes.
	c.setPod(pod("9", "f", claimsKnown))
	if n := len(c.pods["u-f"].claims); n != claimsKnown-3-claimsMost-4 || !c.pods["u-f"].more {
		t.Errorf("%d names of f are kept", n)
	}
	c.endPod(pod("10", "d", 0))
	c.setPod(pod("11", "f", claimsKnown))
	if n := len(c.pods["u-f"].claims); n != claimsKnown-3-4 {
		t.Errorf("%d names of f are kept after a change", n)
	}
	if n := len(c.claims.following); n != claimsMost {
		t.Errorf("%d are followed", n)
	}
}

// A pod that has ended, and that nobody has removed, leaves its claims' places to others.
func TestClaimsOfPodsThatHaveEnded(t *testing.T) {
	lab.Unit(t)
	for _, phase := range []string{"Succeeded", "Failed"} {
		c := New(nil, "n", true, agent.ClusterOptions{Changed: func(string, string) {}, Pods: func() []agent.PodState { return nil }})
		c.claims.start = func(*follower) func() { return func() {} }
		set := func(pod, text string) {
			var o object
			if err := json.Unmarshal([]byte(text), &o); err != nil {
				t.Fatal(err)
			}
			c.setPod(o)
		}
		over := func(pod string) string {
			return strings.Replace(podWith("2", pod, "a", "b"), `"Running"`, `"`+phase+`"`, 1)
		}
		set("first", podWith("1", "first", "a", "b"))
		set("first", over("first"))
		set("second", over("second"))
		if len(c.pods) != 0 || len(c.claims.following) != 0 {
			t.Errorf("%s: %d pods with %d claims stay", phase, len(c.pods), len(c.claims.following))
		}
		if set("third", podWith("3", "third", "c")); len(c.claims.following) != 1 {
			t.Errorf("%s: %d claims are followed", phase, len(c.claims.following))
		}
	}
}

// The name of a claim is anything that the pod's author writes: it selects nothing else.
func TestClaimsOfOddNames(t *testing.T) {
	lab.Unit(t)
	c := New(nil, "n", true, agent.ClusterOptions{Changed: func(string, string) {}})
	var asked []string
	c.claims.start = func(f *follower) func() { asked = append(asked, f.selector.Get("fieldSelector")); return func() {} }
	var o object
	if err := json.Unmarshal([]byte(podWith("1", "a", `x,metadata.namespace!=y\`)), &o); err != nil {
		t.Fatal(err)
	}
	c.setPod(o)
	if want := `metadata.name=x\,metadata.namespace!\=y\\`; !slices.Equal(asked, []string{want}) {
		t.Errorf("%q, want %q", asked, want)
	}
}
