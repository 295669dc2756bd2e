package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/lab"
)

const webID = "3f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"

// patience is far longer than anything here takes.
const patience = 30 * time.Second

// An agent on a copy of a machine, whose kernel takes rules, with Docker and one container.
type tested struct {
	*Agent
	t     *testing.T
	plans string
	mu    sync.Mutex
	log   strings.Builder
}

func (d *tested) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Write(b)
}

func start(t *testing.T, text string) *tested {
	t.Helper()
	d := prepare(t, text)
	d.start()
	return d
}

// prepare makes an agent that does not run yet, with plans in a directory of their own.
func prepare(t *testing.T, text string) *tested {
	t.Helper()
	return prepareAt(t, filepath.Join(t.TempDir(), "plans.d"), text)
}

// prepareAt makes an agent with plans in a directory; in "", the usual one. Without a text there is no directory.
func prepareAt(t *testing.T, plans, text string) *tested {
	t.Helper()
	lab.Unit(t)
	d := &tested{t: t}
	socket := sockettest.Serve(t, func(out http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/events":
			out.WriteHeader(http.StatusOK)
			out.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/containers/json":
			_, _ = fmt.Fprint(out, `[{"Id":"`+webID+`","Names":["/web"]}]`)
		default:
			_, _ = fmt.Fprintf(out, `{"Id":%q,"State":{"Status":"running","Pid":4900},"HostConfig":{}}`, webID)
		}
	})
	files := map[string]string{
		"proc/4900/cgroup":    "0::/docker/" + webID + "\n",
		"proc/4900/mountinfo": "430 400 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n",
		"sys/fs/cgroup/docker/" + webID + "/cgroup.procs":       "4900\n",
		"sys/fs/cgroup/docker/" + webID + "/cgroup.controllers": "io memory\n",
		"sys/fs/cgroup/docker/cgroup.subtree_control":           "io memory\n",
		"sys/fs/cgroup/docker/" + webID + "/io.max":             "",
	}
	options := host.Options{Sockets: map[string]string{"docker": "unix://" + socket}}
	first := hosttest.Open(t, "v2", files, options)
	options.Root = first.Root
	if d.plans = plans; plans == "" {
		d.plans = filepath.Join(first.Root, planned.Dir)
	}
	if text != "" {
		d.make(text)
	}
	var err error
	d.Agent, err = New(Options{Root: first.Root, Plans: plans, Read: planfile.Read, Log: slog.New(slog.NewTextHandler(d, nil)), Open: func() (*host.Host, error) {
		h, err := host.Open(options)
		if err == nil {
			hosttest.Rehearse(t, h)
		}
		return h, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *tested) start() {
	t := d.t
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ready, done := make(chan bool), make(chan error, 1)
	go func() { done <- d.Run(ctx, func() { close(ready) }) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("it does not get ready")
	}
}

// make makes the directory of the plans, with one file.
func (d *tested) make(text string) {
	d.t.Helper()
	if err := os.MkdirAll(d.plans, 0o700); err != nil {
		d.t.Fatal(err)
	}
	d.write(text)
}

func (d *tested) write(text string) {
	d.t.Helper()
	if err := os.WriteFile(d.plans+"/a.yaml", []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// until waits for a status.
func (d *tested) until(what string, is func(Status) bool) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s := d.Status()
		if is(s) {
			return
		}
		if time.Now().After(deadline) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.t.Fatalf("not %s: %+v\n%s", what, s, d.log.String())
		}
	}
}

func has(plan string, state reconcile.State) func(Status) bool {
	return func(s Status) bool {
		return len(s.Targets) == 1 && s.Targets[0].Key == "docker:"+webID && s.Targets[0].Plan == plan && s.Targets[0].State == state
	}
}

const small = "plans: {small: {write: 1MB/s}, large: {write: 9MB/s}}\nassign: [{docker: web, plan: small}]\n"

// The plans are in force when the agent is ready, follow their files, and stay when those are wrong.
func TestKeepsPlans(t *testing.T) {
	d := start(t, small)
	if s := d.Status(); !has("small", reconcile.InForce)(s) || len(s.Files) != 1 || s.PlansError != "" {
		t.Fatalf("%+v\n%s", s, d.log.String())
	}
	d.write(strings.Replace(small, "plan: small", "plan: large", 1))
	d.until("large", has("large", reconcile.InForce))
	loaded := d.Status().Loaded
	d.write("plans: {small: {wirte: 1MB/s}}\n")
	d.until("refused", func(s Status) bool { return strings.Contains(s.PlansError, "a.yaml:1:") })
	if s := d.Status(); !has("large", reconcile.InForce)(s) || !s.Loaded.Equal(loaded) {
		t.Errorf("%+v", s)
	}
	if err := d.Reload(); err == nil {
		t.Error("it is taken")
	}
	d.write(small)
	d.until("small again", func(s Status) bool { return has("small", reconcile.InForce)(s) && s.PlansError == "" })
	// A new file counts as well, one that comes by a rename too.
	more := "assign: [{docker: '*', plan: large}]\n"
	if err := os.WriteFile(d.plans+"/0.tmp", []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.plans+"/0.tmp", d.plans+"/0.yaml"); err != nil {
		t.Fatal(err)
	}
	d.until("large by the first file", has("large", reconcile.InForce))
	none := strings.Replace(more, "large", "none", 1)
	if err := errors.Join(os.WriteFile(d.plans+"/0.tmp", []byte(none), 0o600), os.Rename(d.plans+"/0.tmp", d.plans+"/0.yaml")); err != nil {
		t.Fatal(err)
	}
	d.until("no plan", func(Status) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return strings.Contains(d.log.String(), "limits removed")
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, says := range []string{"limits set", "plans not loaded"} {
		if !strings.Contains(d.log.String(), says) {
			t.Errorf("%q is not in the log:\n%s", says, d.log.String())
		}
	}
}

// Plans that change before their files are watched are taken all the same.
func TestPlansThatChangeAtTheStart(t *testing.T) {
	d := prepare(t, small)
	d.write(strings.Replace(small, "plan: small", "plan: large", 1))
	d.start()
	d.until("large", has("large", reconcile.InForce))
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := strings.Count(d.log.String(), "plans loaded"); n != 2 {
		t.Errorf("plans are loaded %d times", n)
	}
}

// What somebody writes into the rules is put back, and counted.
func TestRepairsDrift(t *testing.T) {
	d := start(t, small)
	h, err := d.options.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	file := filepath.Join(h.Root, "sys/fs/cgroup/docker", webID, "io.max")
	d.until("followed", func(s Status) bool { return len(s.Hierarchies) == 1 })
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "wbps=1000000") {
		t.Fatalf("%s, %v", text, err)
	}
	// It is one write over what is there: what the agent writes at the same time is never mixed with it.
	other, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.WriteString(strings.Replace(string(text), "wbps=1000000", "wbps=7700000", 1)); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	d.until("repaired", func(s Status) bool {
		return has("small", reconcile.InForce)(s) && s.Counts.Drifts > 0 && s.Counts.Repaired == s.Counts.Drifts && s.Targets[0].Drifts == s.Counts.Drifts
	})
	if c := d.Counts(); c.Repaired == 0 || c.Applied.Count <= c.Repaired || c.Applied.Sum <= 0 {
		t.Errorf("%+v counts not how long it took to set the limits and to repair them", c)
	}
	text, err = os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "wbps=1000000") || strings.Contains(string(text), "wbps=7700000 ") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestRefusesToBegin(t *testing.T) {
	lab.Unit(t)
	h := hosttest.Open(t, "v2", nil, host.Options{})
	bad := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(bad, []byte("plan: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{bad: "a.yaml:1:1", "": "copy"} {
		_, err := New(Options{Root: h.Root, Plans: path, Read: planfile.Read, Log: slog.New(slog.DiscardHandler),
			Open: func() (*host.Host, error) { return host.Open(host.Options{Root: h.Root}) }})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", path, err, says)
		}
	}
}
