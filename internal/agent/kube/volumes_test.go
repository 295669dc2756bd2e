package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/lab"
)

// kept spells an object with what else Kubernetes has of it.
func kept(version, namespace, name string, more map[string]any) string {
	all := map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name, "uid": "u-" + name, "resourceVersion": version, "managedFields": []any{map[string]any{"manager": "x"}}}}
	maps.Copy(all, more)
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

type m = map[string]any

// podWith is a pod with claims; "NAME!" is one that is made for the pod's volume NAME.
func podWith(version, name string, claims ...string) string {
	volumes := []any{m{"name": "config", "configMap": m{"name": "x"}}}
	for _, claim := range claims {
		if its, made := strings.CutSuffix(claim, "!"); made {
			volumes = append(volumes, m{"name": its, "ephemeral": m{"volumeClaimTemplate": m{}}})
		} else {
			volumes = append(volumes, m{"name": "v-" + claim, "persistentVolumeClaim": m{"claimName": claim}})
		}
	}
	return kept(version, "prod", name, m{"spec": m{"volumes": volumes, "nodeName": "node-1"}, "status": m{"phase": "Running"}})
}

func claimOf(version, name, volume string) string {
	return kept(version, "prod", name, m{"spec": m{"volumeName": volume, "volumeAttributesClassName": "wanted-but-not-yet"}, "status": m{"phase": "Bound"}})
}

func volumeOf(version, name, driver, class string, attributes map[string]string) string {
	return kept(version, "", name, m{"spec": m{"csi": m{"driver": driver, "volumeHandle": "handle-" + name, "volumeAttributes": attributes}, "volumeAttributesClassName": class, "claimRef": m{"name": "x"}}, "status": m{"phase": "Bound"}})
}

func classOf(version, name, driver string, parameters map[string]string) string {
	return kept(version, "", name, m{"driverName": driver, "parameters": parameters})
}

const (
	ceph    = "rook-ceph.rbd.csi.ceph.com"
	linstor = "linstor.csi.linbit.com"

	dataClaim = "/api/v1/namespaces/prod/persistentvolumeclaims/data"
	dataPV    = volumesPath + "/pvc-1"
	// echo -n handle-pvc-1linstor.csi.linbit.comnode-1 | sha256sum
	attachmentName = "csi-59b88f63b158fd512dcd748cb66c2fabb55672a84d05e7764840126a7a498419"
)

// limits spells those of a pod's volumes.
func (c *Cluster) limits(uid string) string {
	var all []string
	for _, on := range c.Volumes(uid, "prod") {
		all = append(all, on.Volume+": "+on.Limit.String())
	}
	return strings.Join(all, "; ")
}

// withClass is a cluster with a pod whose volume of ceph-csi has the class gold.
func withClass(t *testing.T) (*fake, *Cluster) {
	t.Helper()
	f := newFake(t)
	f.volumes = true
	f.lists[pods] = []string{podWith("3", "a", "data")}
	f.lists[dataClaim] = []string{claimOf("4", "data", "pvc-1")}
	f.lists[dataPV] = []string{volumeOf("5", "pvc-1", ceph, "gold", map[string]string{"maxReadIops": "900", "pool": "x"})}
	f.lists[classesPath] = []string{classOf("6", "gold", ceph, map[string]string{"maxWriteBps": "1048576", "maxReadIops": "1000"}) + "," +
		classOf("6", "silver", ceph, map[string]string{"maxWriteBps": "524288"}) + "," + classOf("6", "others", "local.csi.openebs.io", map[string]string{"qosIopsLimit": "1"}) + "," +
		classOf("6", "bad", ceph, map[string]string{"maxWriteBps": "1k", "maxReadIops": "10/s\u001b[2J"})}
	c := f.run()
	f.await("the limit", func() bool { return c.limits("u-a") != "" })
	if got := c.limits("u-a"); got != gold {
		t.Errorf("%q", got)
	}
	return f, c
}

const gold = "pvc-1: write 1 MiB/s, read 900 ops/s"

// within awaits a change of a pod's limits, which must take less than a second.
func (f *fake) within(c *Cluster, uid, want string) {
	f.t.Helper()
	began := time.Now()
	f.await(want, func() bool { return c.limits(uid) == want })
	if took := time.Since(began); took > time.Second {
		f.t.Errorf("%s takes %v", want, took)
	}
}

// The limit of a volume is followed from the pod's claim to the volume and its class, by the names of
// these alone, and each change of it counts at once.
func TestVolumesOfClasses(t *testing.T) {
	lab.Unit(t)
	f, c := withClass(t)
	if c.Volumes("u-a", "other") != nil || c.Volumes("u-b", "prod") != nil {
		t.Error("another pod has the volume")
	}
	f.await("the watches", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.open) == 4 })
	f.mu.Lock()
	if got := strings.Join(slices.Sorted(maps.Keys(f.open)), " "); got != strings.Join([]string{spaces, dataPV, pods, classesPath}, " ") { // the claim keeps its volume
		t.Errorf("it watches %s", got)
	}
	for _, r := range f.asked {
		what := askedFor(r)
		if !slices.Contains([]string{pods, spaces, classesPath, dataClaim, dataPV}, what) || r.Method != http.MethodGet {
			t.Errorf("it asks for %s %s", r.Method, what)
		}
		if whole := r.Header.Get("Accept") == "application/json"; whole != (what != spaces) {
			t.Errorf("of %s: %s", what, r.Header.Get("Accept"))
		}
	}
	f.changed = nil
	f.mu.Unlock()

	f.tell(dataPV, eventOf("MODIFIED", volumeOf("11", "pvc-1", ceph, "silver", nil)))
	f.within(c, "u-a", "pvc-1: write 512 KiB/s")
	f.await("the agent's look", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return slices.Equal(f.changed, []string{"pod:u-a"}) })
	// Kubernetes lets nobody change a class's parameters: a new class takes the old one's place.
	f.tell(classesPath, eventOf("DELETED", classOf("12", "silver", ceph, map[string]string{"maxWriteBps": "524288"})))
	f.tell(classesPath, eventOf("ADDED", classOf("13", "silver", ceph, map[string]string{"maxWriteBps": "2M"})))
	f.within(c, "u-a", "pvc-1: write 2 MB/s")
	f.tell(classesPath, eventOf("MODIFIED", classOf("14", "silver", ceph, map[string]string{"maxWriteBps": "3M"})))
	f.within(c, "u-a", "pvc-1: write 3 MB/s")
	f.tell(dataPV, eventOf("MODIFIED", volumeOf("15", "pvc-1", ceph, "", map[string]string{"x": "y"})))
	f.within(c, "u-a", "")

	f.tell(pods, eventOf("ADDED", podWith("16", "b", "data"))) // the same claim: what is known of it counts at once
	f.tell(dataPV, eventOf("MODIFIED", volumeOf("17", "pvc-1", ceph, "gold", map[string]string{"maxReadIops": "900"})))
	f.within(c, "u-b", gold)
	f.tell(pods, eventOf("DELETED", podWith("18", "a", "data")))
	f.tell(pods, eventOf("DELETED", podWith("19", "b", "data")))
	f.await("the end of the volume's watch", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.open[dataPV] == 0 && len(f.open) == 3 })
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.claims; len(k.volumes)+len(k.attachments)+len(k.following) != 0 {
		t.Errorf("it keeps %+v", k)
	}
}

// A wrong value is told on the pod, and changes nothing.
func TestWrongVolumes(t *testing.T) {
	lab.Unit(t)
	for name, c := range map[string]struct{ class, says string }{
		"a value":        {"bad", `volume pvc-1 of the claim data: maxReadIops: \"10/s\\x1b[2J\" is no Kubernetes quantity`},
		"another driver": {"others", "VolumeAttributesClass others is for the driver local.csi.openebs.io, and the volume is of the driver " + ceph},
		"no class":       {"none", "there is no VolumeAttributesClass none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, cluster := withClass(t)
			f.tell(dataPV, eventOf("MODIFIED", volumeOf("11", "pvc-1", ceph, c.class, nil)))
			f.await("the event", func() bool { return f.has(`"reason":"VolumeLimitsWrong"`) == 1 })
			f.await("the annotation", func() bool {
				return f.has(`PATCH /api/v1/namespaces/prod/pods/a/status {"metadata":{"annotations":{"weir.io/status":"wrong: volume pvc-1 of the claim data: `) == 1
			})
			if f.has(c.says) != 2 || f.has("; what counted before stays in force") != 2 || f.has(`"type":"Warning"`) != 1 || cluster.limits("u-a") != gold {
				t.Errorf("%q, %q", cluster.limits("u-a"), f.sent)
			}
			f.tell(dataPV, eventOf("MODIFIED", volumeOf("12", "pvc-1", ceph, "silver", nil)))
			f.within(cluster, "u-a", "pvc-1: write 512 KiB/s")
			f.set(func() { f.states = []agent.PodState{{Name: "prod/a", Plan: "volumes"}} })
			f.set(func() { cluster.mu.Lock(); cluster.pods["u-a"].when = time.Unix(1, 0); cluster.mu.Unlock() }) // as if that were long ago
			f.await("the right one", func() bool { return f.has("in force, plan volumes") == 2 })
		})
	}
}

// LINSTOR's limits are in the volume's attachment to this node, and nowhere else.
func TestVolumesOfAttachments(t *testing.T) {
	lab.Unit(t)
	at := attachmentsPath + "/" + attachmentName
	attached := func(version, driver, node string, metadata map[string]string) string {
		return kept(version, "", attachmentName, m{"spec": m{"attacher": driver, "nodeName": node, "source": m{"persistentVolumeName": "pvc-1"}}, "status": m{"attached": true, "attachmentMetadata": metadata}})
	}
	own := map[string]string{"qos.linbit.com/device": "/dev/drbd1000", "qos.linbit.com/wbps": "20971520", "qos.linbit.com/riops": "4k", "linstor.csi.linbit.com/fs-type": "ext4"}
	f := newFake(t)
	f.volumes = true
	f.lists[pods] = []string{podWith("3", "a", "scratch!")}
	f.lists["/api/v1/namespaces/prod/persistentvolumeclaims/a-scratch"] = []string{claimOf("4", "a-scratch", "")} // it has no volume yet
	f.lists[dataPV] = []string{volumeOf("5", "pvc-1", linstor, "gold", map[string]string{"qos.linbit.com/device": "/dev/x", "qos.linbit.com/wbps": "1"})}
	f.lists[classesPath] = []string{classOf("6", "gold", linstor, map[string]string{"qos.linbit.com/device": "/dev/x", "qos.linbit.com/rbps": "1"})}
	c := f.run()
	f.await("the claim's watch", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.open["/api/v1/namespaces/prod/persistentvolumeclaims/a-scratch"] == 1
	})
	f.tell("/api/v1/namespaces/prod/persistentvolumeclaims/a-scratch", eventOf("MODIFIED", claimOf("11", "a-scratch", "pvc-1")))
	f.await("the attachment's watch", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.open[at] == 1 })
	if got := c.limits("u-a"); got != "" {
		t.Errorf("of the volume and its class: %q", got)
	}
	for i, step := range []struct{ event, want string }{
		{attached("12", linstor, "node-1", own), "pvc-1: write 20 MiB/s, read 4000 ops/s"},
		{attached("13", linstor, "node-2", own), ""},
		{attached("14", linstor, "node-1", own), "pvc-1: write 20 MiB/s, read 4000 ops/s"},
		{attached("15", "evil.example", "node-1", own), ""},
	} {
		f.tell(at, eventOf("MODIFIED", step.event))
		f.await(fmt.Sprint("step ", i, ": ", step.want, ", but ", c.limits("u-a")), func() bool { return c.limits("u-a") == step.want })
	}
	f.tell(at, eventOf("MODIFIED", attached("16", linstor, "node-1", own)))
	f.await("the limit", func() bool { return c.limits("u-a") != "" })
	f.tell(at, eventOf("DELETED", attached("17", linstor, "node-1", own)))
	f.await("its end", func() bool { return c.limits("u-a") == "" })
}

// Volumes of other drivers are read once, and have no limit, whatever words of others they use.
func TestVolumesOfOthers(t *testing.T) {
	lab.Unit(t)
	words := map[string]string{"maxReadIops": "1", "qosIopsLimit": "1", "qos.linbit.com/device": "/dev/x", "qos.linbit.com/rbps": "1"}
	f := newFake(t)
	f.volumes = true
	f.lists[pods] = []string{podWith("3", "a", "data", "local")}
	f.lists[dataClaim] = []string{claimOf("4", "data", "pvc-1")}
	f.lists[dataPV] = []string{volumeOf("5", "pvc-1", "evil.example", "gold", words)}
	f.lists["/api/v1/namespaces/prod/persistentvolumeclaims/local"] = []string{claimOf("4", "local", "pv-local")}
	f.lists[volumesPath+"/pv-local"] = []string{kept("5", "", "pv-local", m{"spec": m{"local": m{"path": "/x"}}})}
	f.lists[classesPath] = []string{classOf("6", "gold", "evil.example", words)}
	c := f.run()
	f.await("the volumes", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		one, other := c.claims.volumes["pvc-1"], c.claims.volumes["pv-local"]
		return one != nil && one.read && other != nil && other.read && c.claims.listed
	})
	f.await("the end of their watches", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.open) == 3 })
	if got := c.limits("u-a"); got != "" || f.has("VolumeLimitsWrong") != 0 {
		t.Errorf("%q, %q", got, f.sent)
	}
}

// A claim is removed and made anew, with another volume, while a pod that has ended still names it: a new pod
// has the new volume's limit.
func TestAClaimMadeAnew(t *testing.T) {
	lab.Unit(t)
	f, c := withClass(t)
	f.set(func() {
		f.lists[dataClaim] = []string{claimOf("12", "data", "pvc-2")}
		f.lists[volumesPath+"/pvc-2"] = []string{volumeOf("13", "pvc-2", ceph, "silver", nil)}
	})
	f.tell(pods, eventOf("ADDED", podWith("14", "b", "data")))
	f.await("the new volume's limit", func() bool { return c.limits("u-b") == "pvc-2: write 512 KiB/s" })
	if got := c.limits("u-a"); got != gold {
		t.Errorf("of the former pod: %q", got)
	}
}

// What is refused is said once, whoever asks, and the pods are followed all the same.
func TestVolumesRefused(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.volumes = true
	f.lists[pods] = []string{podWith("3", "a", "data", "b", "c")}
	for i, claim := range []string{"data", "b", "c"} {
		f.lists[claimsPath("prod")+"/"+claim] = []string{claimOf("4", claim, fmt.Sprint("pvc-", i))}
	}
	f.refusedPath = volumesPath
	c := f.run()
	f.await("the refusals", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.failed[volumesPath]) == 3
	})
	if n := f.has("about=" + volumesPath); n != 1 || f.has("403 Forbidden: not yours") != 1 || c.write("u-a") != "" {
		t.Errorf("it is said %d times: %s", n, f.log.String())
	}
	f.set(func() { f.refusedPath = "" })
	for i := range 3 {
		f.tell(fmt.Sprint(volumesPath, "/pvc-", i), eventOf("BOOKMARK", objectOf("", "", "", "11", nil)))
	}
	f.await("their end", func() bool { return f.has("answers again") == 1 })
}
