package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/lab"
)

const (
	webID = "3f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"
	dbID  = "4f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"
)

// patience is far longer than anything here takes.
const patience = 30 * time.Second

// A docker is a stand-in for Docker: it lists containers and tells of events.
type docker struct {
	mu        sync.Mutex
	list      string
	listed    int
	inspected int
	events    chan string
}

func (d *docker) answer(out http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/events":
		out.WriteHeader(http.StatusOK)
		out.(http.Flusher).Flush()
		for text := range d.events {
			if text == "" {
				return
			}
			_, _ = fmt.Fprint(out, text)
			out.(http.Flusher).Flush()
		}
	case r.URL.Path == "/containers/json":
		d.mu.Lock()
		defer d.mu.Unlock()
		d.listed++
		_, _ = fmt.Fprint(out, d.list)
	case d.isInspected():
	case strings.Contains(r.URL.Path, webID) || strings.Contains(r.URL.Path, "/web/"):
		_, _ = fmt.Fprintf(out, `{"Id":%q,"State":{"Status":"running","Pid":4900},"HostConfig":{}}`, webID)
	default:
		_, _ = fmt.Fprintf(out, `{"Id":%q,"State":{"Status":"running","Pid":4910},"HostConfig":{}}`, dbID)
	}
}

// questions is how often a container was asked for.
func (d *docker) questions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inspected
}

// isInspected counts a question about a container, and answers nothing.
func (d *docker) isInspected() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inspected++
	return false
}

const both = `[{"Id":"` + webID + `","Names":["/web"]},{"Id":"` + dbID + `","Names":["/db"]}]`

// newSource is the source of a copy of a machine, whose kernel takes rules.
func newSource(t *testing.T, d *docker, config string) (*Kind, *hosttest.Kernel, chan string) {
	t.Helper()
	lab.Unit(t)
	d.list, d.events = both, make(chan string)
	socket := sockettest.Serve(t, d.answer)
	files := map[string]string{}
	for pid, id := range map[string]string{"4900": webID, "4910": dbID} {
		files["proc/"+pid+"/cgroup"] = "0::/docker/" + id + "\n"
		files["proc/"+pid+"/mountinfo"] = "430 400 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n440 430 254:16 / /data rw,relatime - xfs /dev/vdb rw\n"
		files["sys/fs/cgroup/docker/"+id+"/cgroup.procs"] = pid + "\n"
		files["sys/fs/cgroup/docker/"+id+"/cgroup.controllers"] = "io memory\n"
		files["sys/fs/cgroup/docker/"+id+"/io.max"] = ""
	}
	sockets := map[string]string{"docker": "unix://" + socket}
	h := hosttest.Open(t, "v2", files, host.Options{Sockets: sockets})
	kernel := hosttest.Rehearse(t, h)
	read, err := planfile.Read([]plans.File{{Name: "a.yaml", Text: []byte(config)}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 8)
	k := &Kind{kind: "docker", host: h, options: Options{
		Open:  func() (*host.Host, error) { return host.Open(host.Options{Root: h.Root, Sockets: sockets}) },
		Plans: NewPlans(read),
		Ended: func(kind, name string) { ended <- kind + ":" + name },
	}}
	return k, kernel, ended
}

const config = "plans: {small: {write: 1MB/s}}\nassign: [{docker: web, plan: small}]\n"

// The engine is asked once about a container that is looked at and limited, and again only where the container has another
// group by then.
func TestAContainerIsAskedForOnce(t *testing.T) {
	for _, another := range []bool{false, true} {
		d := &docker{}
		k, kernel, _ := newSource(t, d, config)
		all, err := k.Look(t.Context(), []string{webID})
		if err != nil || len(all) != 1 || d.questions() != 1 {
			t.Fatalf("%+v, %v, %d questions", all, err, d.questions())
		}
		want := 1
		if another {
			want = 2
			dir := filepath.Join(k.host.Root, "sys/fs/cgroup/docker/", webID)
			if err := errors.Join(os.Rename(dir, dir+".old"), os.CopyFS(dir, os.DirFS(dir+".old"))); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.Put(t.Context(), all[0].Key); err != nil || d.questions() != want || len(kernel.Writes) != 2 {
			t.Errorf("%v, %d questions, want %d; %v", err, d.questions(), want, kernel.Writes)
		}
		if k.found != nil {
			t.Errorf("what is done is kept: %+v", k.found)
		}
	}
}

// Rules that are written are read in the group that they are of.
func TestRulesOfAGroup(t *testing.T) {
	k, _, _ := newSource(t, &docker{}, config)
	k.opened = time.Now()
	if err := os.WriteFile(filepath.Join(k.host.Root, "sys/fs/cgroup/docker", webID, "io.max"), []byte("254:16 rbps=max wbps=7 riops=max wiops=max\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]int{"/docker/" + webID: 1, "/docker/" + dbID: 0} {
		if rules, err := k.Rules(t.Context(), group); err != nil || len(rules) != want {
			t.Errorf("%s: %+v, %v", group, rules, err)
		}
	}
	if _, err := k.Rules(t.Context(), "/docker/none"); err == nil {
		t.Error("a group that is not there has rules")
	}
}

// A damaged record of another target is told of, and its own targets are found.
func TestADamagedRecordIsBeside(t *testing.T) {
	d := &docker{}
	k, _, _ := newSource(t, d, config)
	dir := filepath.Join(k.host.Root, "var/lib/weir/plans")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "unit%3Ax.service.json"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if all, err := k.Look(t.Context(), nil); !errors.Is(err, reconcile.ErrBeside) || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestAContainerIsKept(t *testing.T) {
	d := &docker{}
	k, kernel, _ := newSource(t, d, config)
	all, err := k.Look(t.Context(), []string{webID[:12]})
	if err != nil || len(all) != 1 || all[0].Key != "docker:"+webID || all[0].Plan != "small" || all[0].Group != "/docker/"+webID || len(all[0].Rates) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	core := reconcile.NewCore()
	if why := core.Decide(time.Now(), all[0]); why != reconcile.New {
		t.Fatal(why)
	}
	if err := k.Put(t.Context(), all[0].Key); err != nil {
		t.Fatal(err)
	}
	if n := len(kernel.Writes); n != 2 {
		t.Errorf("%v", kernel.Writes)
	}
	core.Done(time.Now(), all[0].Key, nil)
	if all, err = k.Look(t.Context(), []string{"web"}); err != nil || core.Decide(time.Now(), all[0]) != reconcile.None {
		t.Errorf("%+v, %v", all, err)
	}
	// The plans change: what weir has put into force is taken away, and its record goes.
	none, err := planfile.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	k.options.Plans.Set(none)
	if all, err = k.Look(t.Context(), []string{"web"}); err != nil || len(all) != 1 || core.Decide(time.Now(), all[0]) != reconcile.Plan {
		t.Fatalf("%+v, %v", all, err)
	}
	if err := k.Put(t.Context(), all[0].Key); err != nil {
		t.Fatal(err)
	}
	if all, err = k.Look(t.Context(), []string{"web"}); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if err := k.Put(t.Context(), "docker:other"); err == nil {
		t.Error("what was not looked at is put into force")
	}
}

// A label that asks for a plan that it may not have: nothing is put into force, and it is told why.
func TestARefusedLabelIsTold(t *testing.T) {
	d := &docker{}
	k, kernel, _ := newSource(t, d, "plans: {small: {write: 1MB/s}, large: {write: 9MB/s}}\nallow-labels: [small]\n")
	k.opened = time.Now() // the host takes rules: it is not opened anew
	d.list = `[{"Id":"` + webID + `","Names":["/web"],"Labels":{"weir.plan":"small"}}]`
	all, err := k.Look(t.Context(), nil)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if err := k.Put(t.Context(), all[0].Key); err != nil {
		t.Fatal(err)
	}
	d.list = strings.Replace(d.list, "small", "large", 1)
	writes := len(kernel.Writes)
	core := reconcile.NewCore()
	for _, names := range [][]string{nil, {webID}} { // first its limits are taken away
		if all, err = k.Look(t.Context(), names); err != nil || len(all) != 1 || all[0].Plan != reconcile.NoPlan {
			t.Fatalf("%+v, %v", all, err)
		}
		if names == nil && core.Decide(time.Now(), all[0]) != reconcile.None {
			if err := k.Put(t.Context(), all[0].Key); err != nil {
				t.Fatal(err)
			}
			core.Done(time.Now(), all[0].Key, nil)
		}
	}
	if len(kernel.Writes) == writes || core.Decide(time.Now(), all[0]) != reconcile.None || !strings.Contains(core.News("docker:"+webID), "allow-labels") {
		t.Errorf("%+v %v", all, kernel.Writes[writes:])
	}
}

// The same is told where another entry of the plans is for the target, or the default is: that plan is in force.
func TestARefusedLabelIsToldBesideAPlan(t *testing.T) {
	for name, entry := range map[string]string{"an entry": "assign: [{docker: web, plan: small}]\n", "the default": "default: small\n"} {
		t.Run(name, func(t *testing.T) {
			d := &docker{}
			k, _, _ := newSource(t, d, "plans: {small: {write: 1MB/s}, large: {write: 9MB/s}}\n"+entry)
			k.opened = time.Now() // the host takes rules: it is not opened anew
			d.list = `[{"Id":"` + webID + `","Names":["/web"],"Labels":{"weir.plan":"large"}}]`
			core := reconcile.NewCore()
			for i := range 2 { // before it has its limits, and after
				all, err := k.Look(t.Context(), nil)
				if err != nil || len(all) != 1 || all[0].Plan != "small" || all[0].Err != nil {
					t.Fatalf("%+v, %v", all, err)
				}
				if why := core.Decide(time.Now(), all[0]); (why == reconcile.None) != (i == 1) {
					t.Fatalf("look %d: %q", i, why)
				}
				if i == 0 {
					core.Done(time.Now(), all[0].Key, k.Put(t.Context(), all[0].Key))
				}
				if s, _ := core.Status(); len(s) != 1 || s[0].State != reconcile.InForce || !strings.Contains(s[0].Finding, "asks for the plan \"large\", which allow-labels does not have") {
					t.Errorf("%+v", s)
				}
			}
			if !strings.Contains(core.News("docker:"+webID), "allow-labels") || core.News("docker:"+webID) != "" {
				t.Error("it is not news, or always is")
			}
		})
	}
}

// What is not wanted is not even asked for: an engine may hold a container's lock.
func TestOnlyWhatIsNamedIsLookedAt(t *testing.T) {
	d := &docker{}
	k, _, _ := newSource(t, d, "plans: {small: {write: 1MB/s}}\nassign: [{docker: '*', plan: small}]\n")
	for names, want := range map[string]int{webID: 1, dbID[:12]: 1, "none": 0, webID + "," + dbID: 2} {
		all, err := k.Look(t.Context(), strings.Split(names, ","))
		if err != nil || len(all) != want {
			t.Errorf("%s: %+v, %v", names, all, err)
		}
	}
}

func TestDockerTells(t *testing.T) {
	d := &docker{}
	k, _, ended := newSource(t, d, config)
	changed, failed := make(chan string, 8), make(chan error, 1)
	go func() { failed <- k.Follow(t.Context(), func(name string) { changed <- name }) }()
	if name := <-changed; name != "" {
		t.Error(name)
	}
	d.events <- `{"Action":"start","Actor":{"ID":"` + webID + `"}}` + "\n"
	if name := <-changed; name != webID {
		t.Error(name)
	}
	d.events <- `{"Action":"die","Actor":{"ID":"` + dbID + `"}}` + "\n"
	if name := <-ended; name != "docker:"+dbID {
		t.Error(name)
	}
	close(d.events)
	if err := <-failed; err == nil {
		t.Error("it ends without an error")
	}
}

// A kind that no plan is for is not followed before there is one.
func TestFollowsOncePlansNeedIt(t *testing.T) {
	d := &docker{}
	k, _, _ := newSource(t, d, "plans: {small: {write: 1MB/s}}\nassign: [{unit: x.service, plan: small}]\n")
	changed, failed := make(chan string, 8), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { failed <- k.Follow(ctx, func(name string) { changed <- name }) }()
	select {
	case <-changed:
		t.Error("it is followed")
	case <-time.After(20 * time.Millisecond):
	}
	read, err := planfile.Read([]plans.File{{Name: "a.yaml", Text: []byte(config)}})
	if err != nil {
		t.Fatal(err)
	}
	k.options.Plans.Set(read)
	<-changed
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(d.events)
}

// The tree tells whose group is born, ends or is written.
func TestTheTreeTells(t *testing.T) {
	d := &docker{}
	k, _, _ := newSource(t, d, config)
	top := filepath.Join(k.host.Root, "sys/fs/cgroup")
	told := make(chan string, 64)
	tr := &Tree{Options: k.options, Log: slog.New(slog.DiscardHandler), Changed: func(kind, name string) { told <- kind + ":" + name }}
	tr.Options.Ended = func(kind, name string) { told <- "ended " + kind + ":" + name }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { tr.Run(ctx); close(done) }()
	expect := func(want string) {
		t.Helper()
		var got []string
		for deadline := time.After(patience); !slices.Contains(got, want); {
			select {
			case one := <-told:
				got = append(got, one)
			case <-deadline:
				t.Fatalf("%v, want %s", got, want)
			}
		}
	}
	expect(":")
	for len(tr.Stats()) == 0 {
		time.Sleep(time.Millisecond)
	}
	id := strings.Repeat("a", 64)
	if err := os.Mkdir(top+"/docker/"+id, 0o700); err != nil {
		t.Fatal(err)
	}
	expect("docker:" + id[:12])
	if err := os.WriteFile(top+"/docker/"+webID+"/io.max", []byte("8:0 wbps=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("docker:" + webID[:12])
	if err := errors.Join(os.Mkdir(top+"/mine", 0o700), os.Remove(top+"/docker/"+id)); err != nil {
		t.Fatal(err)
	}
	expect("containerd:")
	expect("docker:" + id[:12]) // it has ended
	expect("containerd:")       // once more: a daemon may list it late
	cancel()
	<-done
	if s := tr.Stats()["/sys/fs/cgroup"]; s.Groups == 0 || s.Missed != 0 {
		t.Errorf("%+v", tr.Stats())
	}
}
