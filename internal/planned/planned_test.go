package planned

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/lab"
)

const (
	webID = "3f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"
	dbID  = "4f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"
)

// A world is a copy of a machine with Docker and two containers, whose kernel takes rules.
type world struct {
	*hosttest.Kernel
	host    *host.Host
	list    string // what Docker lists
	stopped bool   // web has no process
	removed bool   // Docker does not know web
	renamed bool   // and db is called web
}

const both = `[{"Id":"` + webID + `","Names":["/web"]},{"Id":"` + dbID + `","Names":["/db"],"Labels":{"weir.plan":"db"}}]`

func newWorld(t *testing.T, version string) *world {
	t.Helper()
	w := &world{list: both}
	socket := sockettest.Serve(t, func(out http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/containers/json":
			_, _ = fmt.Fprint(out, w.list)
		case strings.Contains(r.URL.Path, "db") || w.renamed && strings.Contains(r.URL.Path, "/web/") || strings.Contains(r.URL.Path, dbID):
			_, _ = fmt.Fprintf(out, `{"Id":%q,"State":{"Status":"running","Pid":4910},"HostConfig":{}}`, dbID)
		case w.removed:
			out.WriteHeader(http.StatusNotFound)
		case w.stopped:
			_, _ = fmt.Fprintf(out, `{"Id":%q,"State":{"Status":"exited"},"HostConfig":{}}`, webID)
		default:
			_, _ = fmt.Fprintf(out, `{"Id":%q,"State":{"Status":"running","Pid":4900},"HostConfig":{}}`, webID)
		}
	})
	files := map[string]string{}
	for pid, id := range map[string]string{"4900": webID, "4910": dbID} {
		files["proc/"+pid+"/cgroup"] = "0::/docker/" + id + "\n3:blkio:/docker/" + id + "\n"
		files["proc/"+pid+"/mountinfo"] = "430 400 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n440 430 254:16 / /data rw,relatime - xfs /dev/vdb rw\n"
		if version == "v2" {
			files["sys/fs/cgroup/docker/"+id+"/cgroup.procs"] = pid + "\n"
			files["sys/fs/cgroup/docker/"+id+"/cgroup.controllers"] = "io memory\n"
			files["sys/fs/cgroup/docker/"+id+"/io.max"] = ""
			continue
		}
		files["sys/fs/cgroup/blkio/docker/"+id+"/cgroup.procs"] = pid + "\n"
		for _, file := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
			files["sys/fs/cgroup/blkio/docker/"+id+"/blkio.throttle."+file+"_device"] = ""
		}
	}
	w.host = hosttest.Open(t, version, files, host.Options{Sockets: map[string]string{"docker": "unix://" + socket}})
	w.Kernel = hosttest.Rehearse(t, w.host)
	return w
}

func (w *world) manager(t *testing.T, text string) Manager {
	t.Helper()
	config, err := planfile.Read([]plans.File{{Name: "a.yaml", Text: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return Manager{Host: w.host, Config: config}
}

// apply applies plans, and spells what became of the targets.
func (w *world) apply(t *testing.T, text string) string {
	t.Helper()
	w.Writes = nil
	r, err := w.manager(t, text).Apply(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return spell(r)
}

func spell(r Report) string {
	var words []string
	for _, one := range r.Targets {
		words = append(words, fmt.Sprintf("%s %s %s", one.Name, one.Choice.Plan, one.State))
	}
	return strings.Join(words, ", ")
}

// limitOf is what is in force for a container on a device.
func (w *world) limitOf(t *testing.T, id string, dev blkdev.Number) string {
	t.Helper()
	io, err := w.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	g, err := io.Group("/docker/" + id)
	if err != nil {
		t.Fatal(err)
	}
	l, err := g.Rule(dev)
	if err != nil {
		t.Fatal(err)
	}
	return l.Bound().String()
}

func (w *world) onRecord(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.host.Root, records))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name()[:len("docker%3A3f2a")])
	}
	return names
}

var (
	vda = blkdev.Number{Major: 254}
	vdb = blkdev.Number{Major: 254, Minor: 16}
)

const (
	twoPlans = "plans: {small: {write: 10MB/s}, db: {extends: small, on: [{path: /data, write: 50MB/s}]}}\n"
	assigned = twoPlans + "assign: [{docker: web, plan: small}]\nallow-labels: [db]\n"
)

// What plans say is in force after one apply; the next writes nothing; a plan that changes is in
// force after the next; a target that loses its plan loses its limits, and no other does.
func TestApply(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		w := newWorld(t, version)
		if got := w.apply(t, assigned); got != "docker:web small changed, docker:db db changed" {
			t.Error(version, got)
		}
		for _, c := range []struct {
			id   string
			dev  blkdev.Number
			want string
		}{{webID, vda, "write 10 MB/s"}, {webID, vdb, "write 10 MB/s"}, {dbID, vda, "write 10 MB/s"}, {dbID, vdb, "write 50 MB/s"}} {
			if got := w.limitOf(t, c.id, c.dev); got != c.want {
				t.Errorf("%s: %s of %.4s is %s", version, c.dev, c.id, got)
			}
		}
		if got := w.apply(t, assigned); got != "docker:web small in-force, docker:db db in-force" || len(w.Writes) != 0 {
			t.Error(version, got, w.Writes)
		}
		if got := w.apply(t, strings.Replace(assigned, "10MB/s", "5MB/s, read: 1MB/s", 1)); got != "docker:web small changed, docker:db db changed" || w.limitOf(t, webID, vda) != "read 1 MB/s, write 5 MB/s" {
			t.Error(version, got, w.limitOf(t, webID, vda))
		}
		// The read limit goes with the plan that named it.
		if w.apply(t, assigned); w.limitOf(t, webID, vda) != "write 10 MB/s" || len(w.onRecord(t)) != 2 {
			t.Error(version, w.limitOf(t, webID, vda), w.onRecord(t))
		}
		if got := w.apply(t, twoPlans+"allow-labels: [db]\n"); got != "docker:web none changed, docker:db db in-force" {
			t.Error(version, got)
		}
		if got := w.limitOf(t, webID, vda) + w.limitOf(t, webID, vdb) + w.limitOf(t, dbID, vdb); got != "no rate namedno rate namedwrite 50 MB/s" || !slices.Equal(w.onRecord(t), []string{"docker%3A4f2a"}) {
			t.Error(version, got, w.onRecord(t))
		}
	}
}

// Two places on one disk share its rates, beside the plan's others. Two values for one rate are refused.
func TestPlacesOnOneDisk(t *testing.T) {
	const plan = "plans: {two: {read: 20MB/s, write: 10MB/s, on: [{path: /data, write: 50MB/s}, {path: '254:16', read: 30MB/s}]}}\nassign: [{docker: web, plan: two}]\n"
	for _, version := range []string{"v1", "v2"} {
		w := newWorld(t, version)
		if got := w.apply(t, plan); got != "docker:web two changed, docker:db none no-plan" || w.limitOf(t, webID, vda) != "read 20 MB/s, write 10 MB/s" || w.limitOf(t, webID, vdb) != "read 30 MB/s, write 50 MB/s" {
			t.Errorf("%s: %s; %s; %s", version, got, w.limitOf(t, webID, vda), w.limitOf(t, webID, vdb))
		}
		r, err := w.manager(t, strings.Replace(plan, "read: 30MB/s", "write: 60MB/s", 1)).Apply(t.Context(), false)
		if err == nil || !strings.Contains(err.Error(), "are both on /dev/vdb") || spell(r) != "docker:web two failed, docker:db none no-plan" || w.limitOf(t, webID, vdb) != "read 30 MB/s, write 50 MB/s" {
			t.Errorf("%s: %s, %v, %s", version, spell(r), err, w.limitOf(t, webID, vdb))
		}
	}
}

// A limit that somebody else has set stays where no plan names the target; where one does, the plan
// is the whole of it.
func TestApplyLeavesOthersAlone(t *testing.T) {
	w := newWorld(t, "v2")
	set := func(rate uint64, dev blkdev.Number) {
		asked := []limit.Asked{{On: dev.String(), Limit: limit.Limit{RBPS: limit.PerSecond(rate)}}}
		if _, err := (limiting.Manager{Host: w.host}).Set(t.Context(), limiting.Request{Target: "docker:web", Asked: asked}); err != nil {
			t.Fatal(err)
		}
	}
	set(7e6, vdb)
	r, err := w.manager(t, twoPlans+"allow-labels: [db]\n").Apply(t.Context(), false)
	if err != nil || spell(r) != "docker:db db changed" || !slices.Contains(r.Others, "docker:web") || slices.Contains(r.Others, "docker:db") || w.limitOf(t, webID, vdb) != "read 7 MB/s" {
		t.Errorf("%s, %q, %v", spell(r), r.Others, err)
	}
	if w.apply(t, assigned); w.limitOf(t, webID, vdb) != "write 10 MB/s" {
		t.Error(w.limitOf(t, webID, vdb))
	}
	// What somebody has changed since is somebody else's.
	set(3e6, vda)
	if got := w.apply(t, twoPlans); got != "docker:web none changed, docker:db none changed" || w.limitOf(t, webID, vda) != "read 3 MB/s" || w.limitOf(t, webID, vdb) != "no rate named" || len(w.onRecord(t)) != 0 {
		t.Error(got, w.limitOf(t, webID, vda), w.limitOf(t, webID, vdb), w.onRecord(t))
	}
}

// A container that does not run keeps its record until it is removed.
func TestApplyToStopped(t *testing.T) {
	w := newWorld(t, "v2")
	w.apply(t, assigned)
	w.list, w.stopped = "[]", true
	if got := w.apply(t, assigned); got != "docker:db none changed" || !slices.Equal(w.onRecord(t), []string{"docker%3A3f2a"}) {
		t.Error(got, w.onRecord(t))
	}
	w.removed = true
	if got := w.apply(t, assigned); got != "docker:web none gone" || len(w.onRecord(t)) != 0 {
		t.Error(got, w.onRecord(t))
	}
}

// One target that the kernel refuses keeps no other from it, and has no record.
func TestApplyRefused(t *testing.T) {
	w := newWorld(t, "v2")
	w.Refuse = func(file, _ string) error {
		if strings.Contains(file, webID) {
			return syscall.ENODEV
		}
		return nil
	}
	r, err := w.manager(t, assigned).Apply(t.Context(), false)
	var refused *cgroupfs.WriteError
	if !errors.As(err, &refused) || spell(r) != "docker:web small failed, docker:db db changed" || !slices.Equal(w.onRecord(t), []string{"docker%3A4f2a"}) {
		t.Errorf("%s, %v, %q", spell(r), err, w.onRecord(t))
	}
}

// A change that fails is taken back, and the kernel refuses a part of that: what is left in force is on record,
// with what was before, and goes with the plan.
func TestApplyTakenBackInPart(t *testing.T) {
	for _, before := range []string{"", assigned} {
		w := newWorld(t, "v2")
		if before != "" {
			w.apply(t, before)
		}
		fast := strings.Replace(assigned, "10MB/s", "20MB/s", 1)
		failed := false
		w.Refuse = func(file, line string) error {
			if !strings.Contains(file, webID) || !failed && strings.HasPrefix(line, vda.String()) {
				return nil
			}
			failed = true // and what is in force on the first device stays
			return syscall.ENODEV
		}
		if r, err := w.manager(t, fast).Apply(t.Context(), false); err == nil || !failed || w.limitOf(t, webID, vda) != "write 20 MB/s" {
			t.Fatalf("%s, %v, %s", spell(r), err, w.limitOf(t, webID, vda))
		}
		r, err := recordOf(w.host.Root, "docker:"+webID)
		if err != nil || !r.has(vda, limit.WBPS, 20e6) || r.has(vdb, limit.WBPS, 10e6) != (before != "") {
			t.Errorf("%q before: on record is %+v, %v", before, r, err)
		}
		w.Refuse = nil
		w.apply(t, twoPlans)
		for _, dev := range []blkdev.Number{vda, vdb} {
			if got := w.limitOf(t, webID, dev); got != "no rate named" {
				t.Errorf("%q before: %s is left on %s", before, got, dev)
			}
		}
		if got := w.onRecord(t); len(got) != 0 {
			t.Errorf("on record is %q", got)
		}
	}
}

// While a limit is changed, the rate before is on record beside the new one: where weir is killed then, and the plan goes,
// either goes with it. Once it is changed, the new one alone is on record.
func TestBothRatesAreOnRecord(t *testing.T) {
	lab.Unit(t)
	for _, version := range []string{"v1", "v2"} {
		w := newWorld(t, version)
		w.apply(t, assigned)
		var during *record
		w.Refuse = func(file, _ string) (err error) {
			if during == nil && strings.Contains(file, webID) {
				during, err = recordOf(w.host.Root, "docker:"+webID)
			}
			return err
		}
		w.apply(t, strings.Replace(assigned, "10MB/s", "5MB/s", 1))
		if w.Refuse = nil; during == nil {
			t.Fatalf("%s: nothing was written", version)
		}
		for _, dev := range []blkdev.Number{vda, vdb} {
			if !during.has(dev, limit.WBPS, 10e6) || !during.has(dev, limit.WBPS, 5e6) {
				t.Errorf("%s: while it was changed, %+v was on record", version, during)
			}
		}
		r, err := recordOf(w.host.Root, "docker:"+webID)
		if err != nil || r.has(vda, limit.WBPS, 10e6) || !r.has(vda, limit.WBPS, 5e6) {
			t.Errorf("%s: %+v, %v", version, r, err)
		}
		// As if it had been killed before the second rule, or before the first.
		if err := errors.Join(during.saveOf(w.host.Root), w.groupOf(t, webID).SetRule(vdb, limit.Limit{WBPS: limit.PerSecond(10e6)})); err != nil {
			t.Fatal(err)
		}
		w.apply(t, twoPlans)
		for _, dev := range []blkdev.Number{vda, vdb} {
			if got := w.limitOf(t, webID, dev); got != "no rate named" {
				t.Errorf("%s: %s is left on %s", version, got, dev)
			}
		}
		if got := w.onRecord(t); len(got) != 0 {
			t.Errorf("%s: on record is %q", version, got)
		}
	}
}

// The rates that a killed weird had begun to change are on record beside those before, until somebody has looked.
func TestASweptBirthKeepsTheRatesBefore(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	w.apply(t, assigned)
	next := &record{Target: keyOf(web), Name: web.String(), Host: w.host.Socket("docker"), Plan: "small", Group: new(uint64), At: now(w.host.Root),
		Limits: []deviceRule{{vda, limit.Limit{WBPS: limit.PerSecond(5e6)}}}}
	begun, err := w.host.State.New(birthKind, next)
	if err == nil {
		err = begun.Leave()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.apply(t, twoPlans)
	if a, b := w.limitOf(t, webID, vda), w.limitOf(t, webID, vdb); a != "no rate named" || b != "no rate named" || len(w.onRecord(t)) != 0 {
		t.Errorf("%s, %s are left; on record %q", a, b, w.onRecord(t))
	}
}

// moments are those at which records were saved.
var moments = regexp.MustCompile(`,"at":\{"boot":"[^"]*","since":\d+\}\}\n$`)

// A dry run shows what apply writes, but for the moment at which it does, and changes nothing.
func TestDryRunIsTheDeed(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		w := newWorld(t, version)
		for i, text := range []string{assigned, strings.Replace(assigned, "10MB/s", "5MB/s", 1), twoPlans} {
			w.Writes = nil
			r, err := w.manager(t, text).Apply(t.Context(), true)
			if err != nil || len(w.Writes) != 0 || i == 0 && len(w.onRecord(t)) != 0 {
				t.Fatalf("%v, %q, %q", err, w.Writes, w.onRecord(t))
			}
			var shown []cgroupfs.Write
			kept := map[string]string{}
			for _, s := range r.Steps() {
				if strings.Contains(s.File, records) {
					kept[s.File] = s.Line
				} else {
					shown = append(shown, cgroupfs.Write{File: s.File, Line: s.Line})
				}
			}
			if w.apply(t, text); !slices.Equal(w.Writes, shown) || len(shown) < 3 || len(kept) != 2 {
				t.Errorf("%s: did\n%q\nshown\n%q, %q", version, w.Writes, shown, kept)
			}
			for file, line := range kept {
				is, err := os.ReadFile(file)
				if moments.ReplaceAllString(string(is), "}") != line || (err == nil) != (line != "") {
					t.Errorf("%s: %s, want %s (%v)", file, is, line, err)
				}
			}
		}
	}
}

// Two targets with one group are not limited twice.
func TestOnceEach(t *testing.T) {
	w := newWorld(t, "v2")
	w.list = `[{"Id":"` + webID + `","Names":["/web"]},{"Id":"` + webID + `","Names":["/twin"]}]`
	r, err := w.manager(t, twoPlans+"assign: [{docker: \"*\", plan: small}]\n").Diff(t.Context())
	if err == nil || spell(r) != "docker:web small differs, docker:twin small failed" || !strings.Contains(err.Error(), "docker:twin: it is in the same cgroup as docker:web") {
		t.Errorf("%s, %v", spell(r), err)
	}
}
