package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// An engine stands in for Docker where there is none: it answers like Docker's API, and each of its
// containers is a process in a real cgroup. Like Docker it lists a container, and tells of it, when
// the container's program has been started.
type engine struct {
	t      *testing.T
	e      environ.Environ
	socket string
	mount  string // of the hierarchy with the io controller

	mu        sync.Mutex
	running   map[string]*container // by id
	made      map[string]*container // that do not run yet, by id
	learnt    map[string]bool       // ids of those that somebody has asked for before they ran
	ids       []string              // of all that there were
	listeners map[chan string]bool
}

// A container of an engine.
type container struct {
	id, name string
	labels   map[string]string
	dir      string // of its group
	cmd      *exec.Cmd
	in       io.Closer // its program ends with its input
}

// newEngine makes one without containers. Nothing is left of it at the test's end.
func newEngine(t *testing.T, e environ.Environ) *engine {
	t.Helper()
	g := &engine{t: t, e: e, mount: e.Cgroups.Blkio, running: map[string]*container{}, made: map[string]*container{}, learnt: map[string]bool{}, listeners: map[chan string]bool{}}
	above := ""
	if e.Cgroups.IOInV2 {
		g.mount = e.Cgroups.Unified
		above = filepath.Join(g.mount, "cgroup.subtree_control")
	}
	lab.Cgroup(t, filepath.Join(g.mount, "docker"))
	for _, file := range []string{above, filepath.Join(g.mount, "docker", "cgroup.subtree_control")} {
		if above != "" {
			if err := os.WriteFile(file, []byte("+io +memory"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.socket = sockettest.Serve(t, g.answer)
	t.Cleanup(func() {
		for _, c := range g.all() {
			g.end(c)
		}
		for _, id := range g.ids { // nobody will ask this engine again
			if err := os.Remove(recordOf(id)); err != nil && !os.IsNotExist(err) {
				t.Error(err)
			}
		}
	})
	return g
}

func (g *engine) all() (all []*container) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.running {
		all = append(all, c)
	}
	return all
}

// notYet lists the containers that do not run yet, and notes which of them were asked for: by ids, or,
// without any, all. (weird asks for all once it hears of events: the first may be made before that.)
func (g *engine) notYet(ids []string) (all []*container) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, c := range g.made {
		all = append(all, c)
		g.learnt[id] = g.learnt[id] || ids == nil || slices.Contains(ids, id)
	}
	return all
}

// make makes a container with its group, as a runtime does before the start. program are the words of
// a role of this test binary.
func (g *engine) make(name string, labels map[string]string, program ...string) *container {
	g.t.Helper()
	c := g.create(name, labels, program...)
	g.bear(c)
	return c
}

// bear makes a container's group.
func (g *engine) bear(c *container) {
	g.t.Helper()
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		g.t.Fatal(err)
	}
}

// isLearnt reports whether somebody has asked for a container before it runs.
func (g *engine) isLearnt(c *container) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.learnt[c.id]
}

// create makes a container without a group, as docker create does.
func (g *engine) create(name string, labels map[string]string, program ...string) *container {
	g.t.Helper()
	c := &container{id: newID(), name: name, labels: labels}
	g.ids = append(g.ids, c.id)
	c.dir = filepath.Join(g.mount, "docker", c.id)
	if len(program) == 0 {
		c.cmd = exec.Command("sleep", "3600")
	} else {
		c.cmd = exec.Command("/proc/self/exe")
		c.cmd.Env = append(os.Environ(), roleVariable+"="+strings.Join(program, " "))
		in, err := c.cmd.StdinPipe()
		if err != nil {
			g.t.Fatal(err)
		}
		c.in = in
	}
	g.mu.Lock()
	g.made[c.id] = c
	g.mu.Unlock()
	g.tell("create", c)
	return c
}

// remove removes a container that does not run.
func (g *engine) remove(c *container) {
	g.t.Helper()
	g.mu.Lock()
	delete(g.made, c.id)
	g.mu.Unlock()
	if c.in != nil {
		_ = c.in.Close() // nobody reads it
	}
	g.tell("destroy", c)
}

// join starts the container's process, and puts it into the group.
func (g *engine) join(c *container) {
	g.t.Helper()
	if err := c.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "cgroup.procs"), []byte(strconv.Itoa(c.cmd.Process.Pid)), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// list lists a container from now on, and tells of it.
func (g *engine) list(c *container) {
	g.mu.Lock()
	g.running[c.id] = c
	delete(g.made, c.id)
	g.mu.Unlock()
	g.tell("start", c)
}

// start makes a container and starts its program.
func (g *engine) start(name string, labels map[string]string, program ...string) *container {
	g.t.Helper()
	c := g.make(name, labels, program...)
	g.join(c)
	g.list(c)
	return c
}

// end ends a container, and removes its group.
func (g *engine) end(c *container) {
	g.t.Helper()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	g.mu.Lock()
	delete(g.running, c.id)
	g.mu.Unlock()
	lab.Await(g.t, patience, "the group of a container to be empty", func() bool {
		removeCells(c.dir)
		err := os.Remove(c.dir)
		return err == nil || os.IsNotExist(err)
	})
	g.tell("die", c)
}

// removeCells removes the empty groups that the pacer has made below a container's group, as runc
// does when the container ends.
func removeCells(dir string) {
	below, _ := os.ReadDir(dir)
	for _, one := range below {
		if one.IsDir() {
			_ = os.Remove(filepath.Join(dir, one.Name())) // busy: the next time
		}
	}
}

func (g *engine) tell(action string, c *container) {
	text, err := json.Marshal(map[string]any{"Type": "container", "Action": action, "Actor": map[string]any{"ID": c.id, "Attributes": c.labels}})
	if err != nil {
		g.t.Error(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for l := range g.listeners {
		select {
		case l <- string(text):
		default:
			g.t.Error("nobody reads the engine's events")
		}
	}
}

func (g *engine) answer(out http.ResponseWriter, r *http.Request) {
	name, one := strings.CutPrefix(r.URL.Path, "/containers/")
	name, one2 := strings.CutSuffix(name, "/json")
	switch {
	case r.URL.Path == "/events":
		g.events(out, r)
	case r.URL.Path == "/containers/json":
		all := []map[string]any{}
		var asked struct{ ID []string }
		if text := r.URL.Query().Get("filters"); text != "" && json.Unmarshal([]byte(text), &asked) != nil {
			http.Error(out, `{"message":"invalid filter"}`, http.StatusBadRequest)
			return
		}
		listed := g.all()
		if r.URL.Query().Get("all") == "true" {
			listed = append(listed, g.notYet(asked.ID)...)
		}
		for _, c := range listed {
			if asked.ID != nil && !slices.ContainsFunc(asked.ID, func(id string) bool { return strings.HasPrefix(c.id, id) }) {
				continue
			}
			all = append(all, map[string]any{"Id": c.id, "Names": []string{"/" + c.name}, "Labels": c.labels})
		}
		_ = json.NewEncoder(out).Encode(all)
	case one && one2:
		for _, c := range g.all() {
			if c.name == name || len(name) >= 12 && strings.HasPrefix(c.id, name) { // as Docker finds it
				_ = json.NewEncoder(out).Encode(map[string]any{"Id": c.id, "HostConfig": map[string]any{},
					"State": map[string]any{"Status": "running", "Pid": c.cmd.Process.Pid}})
				return
			}
		}
		http.Error(out, `{"message":"No such container"}`, http.StatusNotFound)
	default:
		http.Error(out, `{"message":"page not found"}`, http.StatusNotFound)
	}
}

func (g *engine) events(out http.ResponseWriter, r *http.Request) {
	mine := make(chan string, 10_000)
	g.mu.Lock()
	g.listeners[mine] = true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.listeners, mine)
		g.mu.Unlock()
	}()
	out.WriteHeader(http.StatusOK)
	flush := func() {
		if f, is := out.(http.Flusher); is {
			f.Flush()
		}
	}
	flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case text := <-mine:
			_, _ = fmt.Fprintln(out, text)
			flush()
		}
	}
}

// recordOf is where weir notes what it has set on a container for a plan.
func recordOf(id string) string { return "/var/lib/weir/plans/docker%3A" + id + ".json" }

func newID() string {
	var b strings.Builder
	for range 4 {
		fmt.Fprintf(&b, "%016x", rand.Uint64())
	}
	return b.String()
}

// wbps is the kernel's rule for a container's writes to a disk; 0: there is none.
func (g *engine) wbps(c *container, disk *lab.TestDisk) uint64 {
	n, err := g.rule(c, disk)
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

func (g *engine) rule(c *container, disk *lab.TestDisk) (uint64, error) {
	text, err := os.ReadFile(g.ruleFile(c))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != disk.Number.String() {
			continue
		}
		for _, f := range fields[1:] {
			rate := f
			if g.e.Cgroups.IOInV2 {
				var is bool
				if rate, is = strings.CutPrefix(f, "wbps="); !is {
					continue
				}
			}
			if rate == "max" {
				return 0, nil
			}
			return strconv.ParseUint(rate, 10, 64)
		}
	}
	return 0, nil
}

func (g *engine) ruleFile(c *container) string {
	if g.e.Cgroups.IOInV2 {
		return filepath.Join(c.dir, "io.max")
	}
	return filepath.Join(c.dir, "blkio.throttle.write_bps_device")
}

// overwrite writes a rule by hand.
func (g *engine) overwrite(c *container, disk *lab.TestDisk, wbps uint64) {
	g.t.Helper()
	line := fmt.Sprintf("%v %d", disk.Number, wbps)
	if g.e.Cgroups.IOInV2 {
		line = fmt.Sprintf("%v wbps=%d", disk.Number, wbps)
	}
	if err := os.WriteFile(g.ruleFile(c), []byte(line), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// awaitRules waits until the rules of containers are one, and returns how long that took.
func (g *engine) awaitRules(within time.Duration, disk *lab.TestDisk, wbps uint64, all ...*container) time.Duration {
	g.t.Helper()
	began := time.Now()
	for _, c := range all {
		for g.wbps(c, disk) != wbps {
			if time.Since(began) > within {
				g.t.Fatalf("%s: the rule is %d, not %d, after %v", c.name, g.wbps(c, disk), wbps, time.Since(began))
			}
			time.Sleep(100 * time.Microsecond)
		}
	}
	return time.Since(began)
}
