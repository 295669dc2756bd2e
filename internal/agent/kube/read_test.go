package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// whatIsRead spells what Read tells of a pod.
func (c *Cluster) whatIsRead(uid string) string {
	of, volumes := c.Read(uid)
	var words []string
	if of {
		words = append(words, "own")
	}
	if volumes {
		words = append(words, "volumes")
	}
	return strings.Join(words, " ")
}

// What a pod asks is known once the pod and all namespaces were read. A pod that is not in the whole list will never be known.
func TestRead(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.lists[pods] = []string{objectOf("prod", "a", "ua", "3", writes("1Mi")) + "," + objectOf("prod", "b", "ub", "3", writes("x"))}
	f.refusedPath = spaces
	c := f.run()
	f.await("the pods", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return slices.Contains(f.changed, "pod:") })
	for uid, want := range map[string]string{"ua": "volumes", "ub": "volumes", "static": "volumes"} {
		if got := c.whatIsRead(uid); got != want {
			t.Errorf("without the namespaces: %s: %q, want %q", uid, got, want)
		}
	}
	f.set(func() { f.refusedPath, f.changed = "", nil })
	f.await("word of the namespaces", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return slices.Contains(f.changed, "pod:") })
	for uid, want := range map[string]string{"ua": "own volumes", "ub": "volumes", "static": "own volumes"} { // ub's from before are not known
		if got := c.whatIsRead(uid); got != want {
			t.Errorf("%s: %q, want %q", uid, got, want)
		}
	}
	f.tell(pods, eventOf("MODIFIED", objectOf("prod", "b", "ub", "11", nil)))
	f.await("right annotations", func() bool { return c.whatIsRead("ub") == "own volumes" })
}

// A pod that is removed by force is not in the cluster any more, while its containers run on: what it has had stays until they
// have ended. So it is with one that a later list does not have.
func TestReadOfAPodThatIsGone(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.lists[pods] = []string{objectOf("prod", "a", "ua", "3", writes("1Mi")) + "," + objectOf("prod", "b", "ub", "3", writes("1Mi"))}
	c := f.run()
	f.await("the pods", func() bool { return c.whatIsRead("ua")+" "+c.whatIsRead("ub") == "own volumes own volumes" })
	f.tell(pods, eventOf("DELETED", objectOf("prod", "a", "ua", "11", nil)))
	f.await("the end of a pod", func() bool { return c.whatIsRead("ua") == "" })
	c.keepPods(func(string) bool { return false })
	if got := c.whatIsRead("ub"); got != "" {
		t.Errorf("ub: %q", got)
	}
	if got := c.whatIsRead("static"); got != "own volumes" {
		t.Errorf("static: %q", got)
	}
	f.tell(pods, eventOf("ADDED", objectOf("prod", "a", "ua", "12", nil)))
	f.await("the pod, again", func() bool { return c.whatIsRead("ua") == "own volumes" })
	for i := range podsMost + 1 {
		c.mu.Lock()
		c.pods[fmt.Sprint(i)] = &known{}
		c.drop(fmt.Sprint(i))
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended["ub"] != 0 || c.ended["0"] != 0 || c.ended["1"] == 0 || len(c.ended) != podsMost {
		t.Errorf("%d UIDs are kept, and not the last ones", len(c.ended))
	}
}

// As long as the API server does not let the pods be read, nothing is known of any.
func TestReadNothing(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.refusedPath = pods
	c := f.run()
	f.await("the refusal", func() bool { return f.has("403 Forbidden") > 0 })
	f.await("the namespaces", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.spacesListed })
	if got := c.whatIsRead("ua"); got != "" {
		t.Errorf("%q", got)
	}
}

// The limits of a pod's volumes are known once each of its claims, volumes and classes was read, and was right.
func TestReadVolumes(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.volumes = true
	f.lists[pods] = []string{podWith("3", "a", "data") + "," + podWith("3", "b", "other") + "," + podWith("3", "c") + "," + podWith("3", "d", "unbound")}
	f.lists[dataClaim] = []string{claimOf("4", "data", "pvc-1")}
	f.lists[claimsPath("prod")+"/other"] = []string{claimOf("4", "other", "pvc-2")}
	f.lists[dataPV] = []string{volumeOf("5", "pvc-1", ceph, "gold", nil)}
	f.lists[volumesPath+"/pvc-2"] = []string{volumeOf("5", "pvc-2", "evil.example", "", nil)}
	f.refusedPath = classesPath
	c := f.run()
	f.await("the volume of another driver", func() bool { return c.whatIsRead("u-b") == "own volumes" })
	f.await("the refusal", func() bool { return f.has("403 Forbidden") > 0 })
	f.await("the volume", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		v := c.claims.volumes["pvc-1"]
		return v != nil && v.read
	})
	for uid, want := range map[string]string{"u-a": "own", "u-c": "own volumes", "u-d": "own"} {
		if got := c.whatIsRead(uid); got != want {
			t.Errorf("%s: %q, want %q", uid, got, want)
		}
	}
	f.set(func() { f.refusedPath, f.changed = "", nil })
	f.await("the classes", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.claims.listed })
	if got := c.whatIsRead("u-a"); got != "own" { // the class is not there, and no earlier one is known
		t.Errorf("without the class: %q", got)
	}
	f.tell(classesPath, eventOf("ADDED", classOf("12", "gold", ceph, nil)))
	f.await("a class without limits", func() bool { return c.whatIsRead("u-a") == "own volumes" })
	f.await("word of it", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return slices.Contains(f.changed, "pod:u-a") })
}
