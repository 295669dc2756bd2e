package planned

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/lab"
)

// twinUID is that of a pod with the name of another one, which ends.
const twinUID = "c9f0f895-fb98-4b2f-9c3e-3f2a9c1b5d7e"

// newTwins is a copy of a machine with two pods prod/web, one of which ends. They have no containers.
func newTwins(t *testing.T) *world {
	t.Helper()
	socket := grpctest.Serve(t, func(method string, _ http.Header, request []byte) grpctest.Answer {
		var m []byte
		switch method[strings.LastIndex(method, "/")+1:] {
		case "ListPodSandbox":
			m = grpc.AppendString(m, 1, message(webID, message("web", podUID, "prod")))
			m = grpc.AppendString(m, 1, message(dbID, message("web", twinUID, "prod")))
		case "PodSandboxStatus":
			pid := "4900"
			if bytes.Contains(request, []byte(dbID)) {
				pid = "4910"
			}
			m = grpc.AppendString(nil, 2, message("info", `{"pid":`+pid+`}`))
		case "ListContainers":
		default:
			t.Errorf("asked %s", method)
		}
		return grpctest.Answer{Message: m}
	})
	files := map[string]string{}
	for _, one := range [][3]string{{"4900", podUID, webID}, {"4910", twinUID, dbID}} {
		pid, pod := one[0], "/kubepods/pod"+one[1]
		files["proc/"+pid+"/cgroup"] = "0::" + pod + "/" + one[2] + "\n"
		files["proc/"+pid+"/mountinfo"] = "430 400 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n"
		for dir, procs := range map[string]string{pod: "", pod + "/" + one[2]: pid + "\n"} {
			dir = "sys/fs/cgroup" + dir + "/"
			files[dir+"cgroup.procs"], files[dir+"cgroup.controllers"], files[dir+"io.max"] = procs, "io memory\n", ""
		}
	}
	w := &world{host: hosttest.Open(t, "v2", files, host.Options{Sockets: map[string]string{"pod": "unix://" + socket}})}
	w.Kernel = hosttest.Rehearse(t, w.host)
	return w
}

// A pod that is made anew has its name while the earlier one ends: each has its limits, and its record.
func TestTwoPodsOfAName(t *testing.T) {
	lab.Unit(t)
	w := newTwins(t)
	m := w.manager(t, "plans: {a: {write: 9MB/s}}\nassign: [{pod: {name: web}, plan: a}]\n")
	all, err := m.OfKind(t.Context(), "pod", nil)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, uid := range []string{podUID, twinUID} {
		one := &all[i]
		if one.State != Differs || one.Name != "pod:prod/web" || one.ID != uid || one.Key() != "pod:"+uid || one.Path() != "/kubepods/pod"+uid {
			t.Errorf("%s %s %s %s %s: %v", one.State, one.Name, one.ID, one.Key(), one.Path(), one.Err)
		}
		if err := m.Put(t.Context(), one); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(filepath.Join(w.host.Root, "sys/fs/cgroup/kubepods/pod"+uid, "io.max"))
		if err != nil || !strings.Contains(string(text), "254:0 rbps=max wbps=9000000") {
			t.Errorf("%q, %v", text, err)
		}
		r, err := m.Show(t.Context(), "pod:"+uid)
		if err != nil || len(r.Targets) != 1 || r.Targets[0].State != InForce {
			t.Errorf("%+v, %v", r, err)
		}
	}
	r, err := m.Apply(t.Context(), false)
	if err != nil || spell(r) != "pod:prod/web a in-force, pod:prod/web a in-force" || len(w.onRecord(t)) != 2 {
		t.Errorf("%s, %v; on record: %v", spell(r), err, w.onRecord(t))
	}
}

// byName saves the record of the pod as an older weir has, by the pod's name.
func (w *world) byName(t *testing.T) {
	t.Helper()
	r, err := recordOf(w.host.Root, "pod:"+podUID)
	if err != nil || r == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	its := *r
	its.Target, its.Seen = its.Name, nil
	if err := its.save(w.host.Root); err != nil {
		t.Fatal(err)
	}
}

// A record that an older weir has saved by a pod's name is the pod's, whoever asks, and goes by the UID from then on.
func TestAPodsRecordOfAnOlderWeir(t *testing.T) {
	lab.Unit(t)
	const plan = "plans: {a: {write: 9MB/s}}\nassign: [{pod: {name: web}, plan: a}]\n"
	older, newer := filepath.Join(records, "pod%3Aprod%2Fweb.json"), filepath.Join(records, "pod%3A"+podUID+".json")
	for name, c := range map[string]struct {
		plans, want, now string
		left             []string
	}{
		"no plan any more": {"plans: {a: {write: 9MB/s}}\n", "pod:prod/web none changed", "", nil},
		"the same plan":    {plan, "pod:prod/web a in-force", "254:0 rbps=- wbps=9000000 riops=- wiops=-; 254:16 rbps=- wbps=9000000 riops=- wiops=-;", []string{newer}},
		"another plan":     {strings.Replace(plan, "9MB", "8MB", 1), "pod:prod/web a changed", "254:0 rbps=- wbps=8000000 riops=- wiops=-; 254:16 rbps=- wbps=8000000 riops=- wiops=-;", []string{newer}},
	} {
		for _, alone := range []bool{false, true} { // as an event has the agent look
			w := newPods(t, nil)
			w.apply(t, plan)
			w.byName(t)
			if err := os.Remove(filepath.Join(w.host.Root, newer)); err != nil {
				t.Fatal(err)
			}
			if !alone {
				if got := w.apply(t, c.plans); got != c.want {
					t.Errorf("%s: %s", name, got)
				}
			} else if err := w.putAll(t, w.manager(t, c.plans)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := w.inForce(t, ""); got != c.now {
				t.Errorf("%s: %q, want %q", name, got, c.now)
			}
			var left []string
			for _, file := range []string{older, newer} {
				if _, err := os.Stat(filepath.Join(w.host.Root, file)); err == nil {
					left = append(left, file)
				}
			}
			if !slices.Equal(left, c.left) {
				t.Errorf("%s: on record are %v, want %v", name, left, c.left)
			}
		}
	}
}

// putAll looks at the pod alone, and does what is to be done.
func (w *world) putAll(t *testing.T, m Manager) error {
	t.Helper()
	all, err := m.OfKind(t.Context(), "pod", []string{podUID})
	for i := range all {
		err = errors.Join(err, m.Amend(t.Context(), &all[i]))
		if all[i].State == Differs || all[i].Lapsed() {
			err = errors.Join(err, m.Put(t.Context(), &all[i]))
		}
	}
	return err
}

// What an older weir has on record by the name of an earlier pod takes nothing from the pod that has the name now.
func TestARecordOfAnEarlierPod(t *testing.T) {
	lab.Unit(t)
	const plan = "plans: {a: {write: 9MB/s}}\nassign: [{pod: {name: web}, plan: a}]\n"
	w := newPods(t, nil)
	w.apply(t, plan)
	w.byName(t)
	const want = "254:0 rbps=- wbps=9000000 riops=- wiops=-; 254:16 rbps=- wbps=9000000 riops=- wiops=-;"
	if got := w.apply(t, plan); got != "pod:prod/web a in-force" || w.inForce(t, "") != want {
		t.Errorf("%s: %q", got, w.inForce(t, ""))
	}
	all, err := w.manager(t, plan).OfKind(t.Context(), "pod", nil)
	if err != nil || len(all) != 1 || all[0].State != InForce {
		t.Errorf("%+v, %v", all, err)
	}
}
