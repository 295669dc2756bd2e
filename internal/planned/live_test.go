package planned

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/limit"
)

// A live knows one pod.
type live struct {
	all  map[string]string
	plan string
	is   bool

	volumes []annotations.On

	unread, unreadVolumes bool // it has not been read
}

func (l *live) Read(string) (of, volumes bool) { return !l.unread, !l.unreadVolumes }

func (l *live) Volumes(uid, namespace string) []annotations.On {
	if uid != podUID || namespace != "prod" {
		return nil
	}
	return l.volumes
}

func (l *live) Of(uid, namespace string) (map[string]string, string, bool) {
	if uid != podUID || namespace != "prod" {
		return nil, "", false
	}
	return l.all, l.plan, l.is
}

// What an API server says of a pod counts, for it and for its containers, in place of what the runtime
// says; and the plan of its namespace does, if it may.
func TestLive(t *testing.T) {
	w := newPods(t, map[string]string{"weir.io/write": "1Mi"})
	l := &live{}
	const plan = "plans: {small: {read: 3MiB/s}, big: {read: 9MiB/s}}\nallow-labels: [small]\n"
	apply := func() {
		t.Helper()
		m := w.manager(t, plan)
		m.Config.Annotated, m.Live = true, l
		if _, err := m.Apply(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	pod := func(want string) {
		t.Helper()
		apply()
		if got := w.inForce(t, ""); strings.Contains(got, "254:16 ") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	pod("wbps=1048576")
	l.is, l.all = true, map[string]string{"weir.io/write": "2Mi", "weir.io/write.main": "1500k"}
	pod("wbps=2097152")
	if got := w.inForce(t, dbID); !strings.Contains(got, "wbps=1500000") {
		t.Errorf("of its container: %q", got)
	}
	l.all = map[string]string{}
	pod("")
	l.plan = "small"
	pod("rbps=3145728")
	l.plan = "big"
	pod("")
	l.plan, l.all = "small", map[string]string{"weir.io/write": "2Mi"}
	pod("rbps=3145728 wbps=2097152")
	l.is, l.plan = false, ""
	pod("wbps=1048576")
}

// The limits that others keep with a pod's volumes are on the volumes' disks, for the pod alone. Of them, a
// plan and the pod's annotations the lowest counts; annotations cannot raise them.
func TestVolumes(t *testing.T) {
	const kubelet = "/var/lib/kubelet/pods/" + podUID
	w := newPods(t, map[string]string{})
	w.mount(t, "1", "41 21 254:16 / "+kubelet+"/volumes/kubernetes.io~csi/pvc-1/mount rw - xfs /dev/vdb rw\n"+
		"42 21 0:5 /vda /var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-raw/"+podUID+" rw - devtmpfs udev rw\n")
	l := &live{is: true, all: map[string]string{}}
	pod := func(text, want string) {
		t.Helper()
		m := w.manager(t, text)
		m.Config.Annotated, m.Live = true, l
		if _, err := m.Apply(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if got := w.inForce(t, ""); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := w.inForce(t, dbID); got != "" {
			t.Errorf("its container has %q", got)
		}
	}
	const nothing = "plans: {}"
	n := limit.PerSecond
	l.volumes = []annotations.On{{Volume: "pvc-1", Limit: limit.Limit{WBPS: n(5e6), RIOPS: n(100)}}, {Volume: "pvc-elsewhere", Limit: limit.Limit{WBPS: n(1)}}}
	pod(nothing, "254:16 rbps=- wbps=5000000 riops=100 wiops=-;")
	l.volumes[0].Limit = limit.Limit{WBPS: n(6e6)}
	pod(nothing, "254:16 rbps=- wbps=6000000 riops=- wiops=-;")
	l.all = map[string]string{"weir.io/on.pvc-1": "write=7M,read=1M"}
	pod(nothing, "254:16 rbps=1000000 wbps=6000000 riops=- wiops=-;")
	l.all = map[string]string{"weir.io/on.pvc-1": "write=2M"}
	pod(nothing, "254:16 rbps=- wbps=2000000 riops=- wiops=-;")
	l.all = map[string]string{"weir.io/write": "x"} // wrong ones take nothing away
	pod(nothing, "254:16 rbps=- wbps=6000000 riops=- wiops=-;")
	l.all = map[string]string{}
	pod("plans: {a: {write: 4MB/s}}\nassign: [{pod: {name: web}, plan: a}]", "254:0 rbps=- wbps=4000000 riops=- wiops=-; 254:16 rbps=- wbps=4000000 riops=- wiops=-;")
	pod("plans: {a: {write: 9MB/s}}\nassign: [{pod: {name: web}, plan: a}]", "254:0 rbps=- wbps=9000000 riops=- wiops=-; 254:16 rbps=- wbps=6000000 riops=- wiops=-;")
	l.volumes = []annotations.On{{Volume: "pvc-raw", Limit: limit.Limit{RBPS: n(3e6)}}}
	pod(nothing, "254:0 rbps=3000000 wbps=- riops=- wiops=-;")
	l.volumes = nil
	pod(nothing, "")
}

// weir plan apply is not told what weird is told, and leaves the limits that come from there. Plans of the
// files count.
func TestWithoutTheAgent(t *testing.T) {
	volumes := []annotations.On{{Volume: "pvc-1", Limit: limit.Limit{WBPS: limit.PerSecond(5e6)}}}
	const mount = "41 21 254:16 / /var/lib/kubelet/pods/" + podUID + "/volumes/kubernetes.io~csi/pvc-1/mount rw - xfs /dev/vdb rw\n"
	const ofFile = "plans: {a: {write: 4MB/s}}\nassign: [{pod: {name: web}, plan: a}]"
	const nothing, five = "plans: {}", "254:16 rbps=- wbps=5000000 riops=- wiops=-;"
	for name, c := range map[string]struct {
		live     *live
		runtimes map[string]string // annotations that the container runtime knows
		text     string            // of the plans that weird has
		then     string            // and weir
		state    State
		want     string // in force
	}{
		"a volume":            {live: &live{is: true, all: map[string]string{}, volumes: volumes}, text: nothing, then: nothing, state: Kept, want: five},
		"a volume and a plan": {live: &live{is: true, all: map[string]string{}, volumes: volumes}, text: nothing, then: ofFile, state: Kept, want: five},
		"an annotation":       {live: &live{is: true, all: map[string]string{"weir.io/on.pvc-1": "write=5M"}}, text: nothing, then: nothing, state: Kept, want: five},
		"the runtime's":       {runtimes: map[string]string{"weir.io/on.pvc-1": "write=5M"}, text: nothing, then: nothing, state: Kept, want: five},
		"a namespace": {live: &live{plan: "a"}, text: "plans: {a: {on: [{path: /data, write: 5MB/s}]}}\nallow-labels: [a]", then: "plans: {a: {write: 9MB/s}}",
			state: Kept, want: five},
		"a plan of the files": {live: &live{is: true, all: map[string]string{}}, text: ofFile, then: nothing, state: Changed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPods(t, c.runtimes)
			w.mount(t, "1", mount)
			weird := w.manager(t, c.text)
			weird.Config.Annotated = true
			if c.live != nil {
				weird.Live = c.live
			}
			if _, err := weird.Apply(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			m := w.manager(t, c.then)
			m.Alone = true
			r, err := m.Apply(t.Context(), false)
			if err != nil || len(r.Targets) != 1 || r.Targets[0].State != c.state || slices.ContainsFunc(r.Others, func(name string) bool { return strings.HasPrefix(name, "pod:") }) {
				t.Errorf("%s, others %q, %v", spell(r), r.Others, err)
			}
			if got := w.inForce(t, ""); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			// Where weird is not told of it any more, it takes the limits away.
			m.Alone, m.Config.Annotated = false, false
			if _, err := m.Apply(t.Context(), false); err != nil || w.inForce(t, "") == five {
				t.Errorf("%q is left (%v)", w.inForce(t, ""), err)
			}
		})
	}
}

// Whoever wrote the pod cannot have another of its volumes take the limit of a persistent volume: one that
// has the same name, or a directory in one that looks like kubelet's.
func TestAnotherVolumeDoesNotTakeTheLimit(t *testing.T) {
	const kubelet = "/var/lib/kubelet/pods/" + podUID + "/volumes/"
	for _, root := range []string{kubelet + "kubernetes.io~empty-dir/pvc-1", kubelet + "kubernetes.io~empty-dir/x/pods/y/volumes/" + csi + "/pvc-1"} {
		w := newPods(t, map[string]string{})
		w.mount(t, "1", "41 21 254:16 / "+kubelet+csi+"/pvc-1/mount rw - xfs /dev/vdb rw\n"+
			"42 21 0:60 / "+kubelet+"kubernetes.io~empty-dir/pvc-1 rw - tmpfs tmpfs rw\n")
		w.mount(t, "4900", "450 430 254:1 "+root+" /cache rw - ext4 /dev/vda1 rw\n")
		m := w.manager(t, "plans: {}")
		m.Config.Annotated, m.Live = true, &live{is: true, all: map[string]string{}, volumes: []annotations.On{{Volume: "pvc-1", Limit: limit.Limit{WBPS: limit.PerSecond(5e6)}}}}
		if _, err := m.Apply(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if got, want := w.inForce(t, ""), "254:16 rbps=- wbps=5000000 riops=- wiops=-;"; got != want {
			t.Errorf("%s: %q, want %q", root, got, want)
		}
	}
}

// A volume whose device cannot be limited is told of as such: it is no wish of the pod.
func TestVolumeWithoutADevice(t *testing.T) {
	w := newPods(t, map[string]string{})
	w.mount(t, "1", "42 21 0:5 /gone /k/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-raw/"+podUID+" rw - devtmpfs udev rw\n"+
		"43 21 0:50 / /k/pods/"+podUID+"/volumes/kubernetes.io~csi/pvc-net/mount rw - nfs4 server:/x rw\n")
	w.mount(t, "4900", "450 430 0:50 / /net rw - nfs4 server:/x rw\n")
	m := w.manager(t, "plans: {}")
	m.Config.Annotated, m.Live = true, &live{volumes: []annotations.On{{Volume: "pvc-raw", Limit: limit.Limit{RBPS: limit.PerSecond(1)}}, {Volume: "pvc-net", Limit: limit.Limit{RBPS: limit.PerSecond(1)}}}}
	r, err := m.Diff(t.Context())
	var its *VolumeError
	if len(r.Targets) != 1 || !errors.As(r.Targets[0].Err, &its) || its.Volume != "pvc-net" || err == nil || r.Targets[0].Choice.Name() != "volumes" || r.Targets[0].Choice.Asks() {
		t.Errorf("%+v, %v", r.Targets, err)
	}
}

// A volume whose device is missing is no volume that nobody has mounted: that it cannot be limited is told of.
func TestAVolumeWhoseDeviceIsMissing(t *testing.T) {
	const mounted = "450 430 254:99 / /cache rw - ext4 /dev/gone rw\n"
	for name, own := range map[string]bool{"an annotation": true, "a CSI driver's": false} {
		w := newPods(t, map[string]string{})
		w.mount(t, "1", "41 21 254:99 / /var/lib/kubelet/pods/"+podUID+"/volumes/kubernetes.io~csi/pvc-1/mount rw - ext4 /dev/gone rw\n")
		w.mount(t, "4900", mounted)
		m := w.manager(t, "plans: {}")
		l := &live{is: true, all: map[string]string{}}
		if m.Config.Annotated, m.Live = true, l; own {
			l.all = map[string]string{"weir.io/on.pvc-1": "write=1M"}
		} else {
			l.volumes = []annotations.On{{Volume: "pvc-1", Limit: limit.Limit{WBPS: limit.PerSecond(1e6)}}}
		}
		r, err := m.Diff(t.Context())
		i := slices.IndexFunc(r.Targets, func(one Target) bool { return one.Name == "pod:prod/web" })
		if err == nil || i < 0 || r.Targets[i].State != Failed || len(r.Targets[i].Unfound) != 0 {
			t.Errorf("%s: %+v, %v", name, r.Targets, err)
		}
	}
}

// A pod whose record is of an earlier group, and that has no volume yet, has nothing to be done.
func TestNothingIsBegun(t *testing.T) {
	w := newPods(t, map[string]string{})
	m := w.manager(t, "plans: {}")
	m.Config.Annotated, m.Live = true, &live{is: true, all: map[string]string{}, volumes: []annotations.On{{Volume: "pvc-elsewhere", Limit: limit.Limit{WBPS: limit.PerSecond(1)}}}}
	r, err := m.Diff(t.Context())
	if err != nil || len(r.Targets) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	next := m.recordOf(r.Targets[0])
	next.Group = new(uint64)
	if err := next.save(w.host.Root); err != nil {
		t.Fatal(err)
	}
	if r, err = m.Apply(t.Context(), false); err != nil || len(r.Targets) != 1 || r.Targets[0].State != InForce {
		t.Errorf("%+v, %v", r, err)
	}
}

// mount adds mounts to those of a process.
func (w *world) mount(t *testing.T, pid, lines string) {
	t.Helper()
	file := filepath.Join(w.host.Root, "proc", pid, "mountinfo")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(text, lines...), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
