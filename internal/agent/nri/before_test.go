package nri

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/base/haste"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/lab"
)

// The pod is a slice of systemd, which does not answer: the rules are in force before the start all the same, and the
// agent is told of the pod once, to have systemd know them.
func TestSystemdHangs(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", inSlices+"/cri-containerd-ID.scope", config)
	if err := os.MkdirAll(filepath.Join(w.root, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.systemd = func(ctx context.Context) (*systemd.Conn, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	w.serve(t)
	for range 2 {
		if err := w.begin(t, w.pod(map[string]string{"weir.io/write.web": "1M"}), container("web", webID, slice1+":cri-containerd:ID")); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.limits(t, inSlices); got != "254:0 rbps=20000000 wbps=10000000 254:16 rbps=20000000 wbps=10000000" {
		t.Errorf("the pod has %q", got)
	}
	if got := w.limits(t, inSlices+"/cri-containerd-"+webID+".scope"); got != "254:0 wbps=1000000 254:16 wbps=1000000" {
		t.Errorf("the container has %q", got)
	}
	if s := w.plugin.Status(); s.Starts != 2 || s.Limited != 2 || s.Late+s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	w.await(t, "word of both", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return fmt.Sprint(w.begun) == "[pod:"+uid+" containerd:"+webID+"]"
	})
}

// hangingLog is a log whose disk does not answer.
type hangingLog struct{ until chan bool }

func (l hangingLog) Write(text []byte) (int, error) { <-l.until; return len(text), nil }

// The answer waits for nothing that can follow it: not for the log, nor the record, nor word to the agent.
func TestTheAnswerComesFirst(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	until := make(chan bool)
	w.plugin.options.Log = slog.New(slog.NewTextHandler(hangingLog{until}, nil))
	told := make(chan string, 1)
	record := w.plugin.options.Begun
	w.plugin.options.Begun = func(b *planned.Birth, kind, name string) {
		<-until
		record(b, kind, name)
		told <- kind + ":" + name
	}
	w.serve(t)
	release := sync.OnceFunc(func() { close(until) })
	defer release()
	err := w.begin(t, w.pod(nil), container("web", webID, plain1+"/ID"))
	if err != nil || w.limits(t, plain1) == "" || w.records(t) != 0 {
		t.Errorf("%v; in force: %q; %d records", err, w.limits(t, plain1), w.records(t))
	}
	select {
	case one := <-told:
		t.Errorf("the answer waits for word of %s", one)
	default:
	}
	for i := range 3 * linesMost { // nor for a log that never answers
		w.plugin.say(slog.LevelInfo, "line", "number", i)
	}
	release()
	if one := <-told; one != "pod:"+uid || w.records(t) != 1 {
		t.Errorf("%s; %d records", one, w.records(t))
	}
}

// The agent's own look at a new pod writes its rules before anything else, so that a start that comes meanwhile finds
// them in force.
func TestANewPodHasItsRulesFirst(t *testing.T) {
	lab.Unit(t)
	n := newNode(t, 2)
	k := n.source(t, nil)
	if all, err := k.Look(t.Context(), []string{n.pods[1].GetUid()}); err != nil || len(all) != 1 || !all[0].Differs() {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, want := range []string{"", "254:0 rbps=20000000 wbps=10000000 254:16 rbps=20000000 wbps=10000000"} {
		if got := n.limits(t, "/kubepods/burstable/pod"+n.pods[i].GetUid()); got != want {
			t.Errorf("pod %d has %q, want %q", i, got, want)
		}
	}
}

// A look at all pods pauses while a container waits for its start, and goes on after that.
func TestALookGivesWay(t *testing.T) {
	lab.Unit(t)
	n := newNode(t, 20)
	n.plugin.options.Gate = &haste.Gate{}
	k := n.source(t, n.plugin.options.Gate)
	ctx := t.Context()
	go n.plugin.work(ctx)
	looked := make(chan error, 1)
	for try := 0; ; try++ { // the test itself may wait for a processor
		inside, let := make(chan bool), make(chan bool)
		n.mu.Lock()
		hold := sync.OnceFunc(func() { close(inside); <-let })
		n.refuse = func(string, string) error { hold(); return nil }
		n.mu.Unlock()
		started, began := make(chan error, 1), time.Now()
		go func() { started <- n.start(ctx, 0, try) }()
		<-inside
		before := n.looks()
		go func() { _, err := k.Look(ctx, nil); looked <- err }()
		time.Sleep(20 * time.Millisecond)
		during, took := n.looks()-before, time.Since(began)
		close(let)
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		if err := <-looked; err != nil {
			t.Fatal(err)
		}
		if after := n.looks() - before; after != 20 {
			t.Fatalf("%d of 20 pods were looked at", after)
		}
		if during == 0 {
			return
		}
		if took < 80*time.Millisecond || try == 20 { // else the look was let go on, as it should be
			t.Fatalf("%d pods were looked at within %v, while a container waited", during, took)
		}
	}
}

// Twenty containers start at once: each has its limits before its start, and none is late.
func TestTwentyAtOnce(t *testing.T) {
	lab.Unit(t)
	const pods = 20
	n := newNode(t, pods)
	ctx := t.Context()
	go n.plugin.work(ctx)
	errs := make(chan error, pods)
	for i := range pods {
		go func() {
			err := n.start(ctx, i, i)
			if got, want := n.limits(t, "/kubepods/burstable/pod"+n.pods[i].GetUid()), fmt.Sprint("wbps=", 1_000_000+i); err == nil && !strings.Contains(got, want+" ") {
				err = fmt.Errorf("pod %d has %q when it starts, want %s", i, got, want)
			}
			errs <- err
		}()
	}
	for range pods {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if s := n.plugin.Status(); s.Starts != pods || s.Limited != pods || s.Late+s.Failed != 0 {
		t.Errorf("%+v", s)
	}
}

// BenchmarkStartBeside is what a start takes on a node with 110 pods, while one look at all of them follows the other and
// another source waits for a daemon that hangs. It fails above the 50 ms that weird promises.
func BenchmarkStartBeside(b *testing.B) {
	n := newNode(b, 110)
	n.plugin.options.Log = slog.New(slog.DiscardHandler)
	gate := &haste.Gate{}
	n.plugin.options.Gate = gate
	ctx, stop := context.WithCancel(b.Context())
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { n.plugin.work(ctx) })
	beside.Go(func() { n.plugin.tell(ctx) })
	pods, hangs := n.source(b, gate), n.hanging(b, gate)
	if _, err := pods.Look(ctx, nil); err != nil {
		b.Fatal(err)
	}
	looks := 0
	beside.Go(func() {
		for ; ctx.Err() == nil; looks++ {
			if _, err := pods.Look(ctx, nil); err != nil && ctx.Err() == nil {
				b.Error(err)
			}
		}
	})
	beside.Go(func() {
		for ctx.Err() == nil {
			_, _ = hangs.Look(ctx, nil) // it has no answer
		}
	})
	for i := 0; b.Loop(); i++ {
		if err := n.start(ctx, i%110, i); err != nil {
			b.Fatal(err)
		}
	}
	s := n.plugin.Status()
	if s.Late+s.Failed != 0 || s.P99 > 50*time.Millisecond {
		b.Errorf("%+v", s)
	}
	b.ReportMetric(float64(s.P99.Microseconds()), "p99-µs")
	stop()
	beside.Wait()
	b.ReportMetric(float64(looks), "looks")
}

// When a container is made, the kernel throttles its disks already, and nothing is limited. That is done once for each
// disk, and not where a group has rules.
func TestDisksArePrepared(t *testing.T) {
	lab.Unit(t)
	for name, c := range map[string]struct {
		config      string
		annotations map[string]string
		volumes     []annotations.On
		want        string
	}{
		"a plan":            {config, nil, nil, "254:0 wbps=max, 254:16 wbps=max"},
		"annotations":       {noPlan, map[string]string{"weir.io/write": "1M"}, nil, "254:0 wbps=max, 254:16 wbps=max"},
		"a volume":          {noPlan, map[string]string{"weir.io/on.pvc-1": "write=1M"}, nil, "254:0 wbps=max, 254:16 wbps=max"},
		"a driver's volume": {noPlan, nil, []annotations.On{{Volume: "pvc-1", Limit: limit.Limit{WBPS: limit.PerSecond(1e6)}}}, "254:0 wbps=max, 254:16 wbps=max"},
		"a container":       {noPlan, map[string]string{"weir.io/plan.web": "db"}, nil, "254:0 wbps=max, 254:16 wbps=max"},
		"nothing":           {noPlan, nil, nil, ""},
	} {
		w := newWorld(t, "v2", inSlices+"/cri-containerd-ID.scope", c.config)
		w.plugin.options.Live = live{c.volumes}
		const sandbox = inSlices + "/cri-containerd-s1.scope"
		var lines []string
		w.mu.Lock()
		w.refuse = func(file, line string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if filepath.Dir(file) != filepath.Join(w.root, "sys/fs/cgroup", sandbox) {
				t.Errorf("%s: %s is written to %s", name, line, file)
			}
			lines = append(lines, line)
			return nil
		}
		w.mu.Unlock()
		l := w.plugin.limiter()
		for range 3 {
			if err := l.prepare(t.Context(), w.plans, w.pod(c.annotations), container("web", webID, slice1+":cri-containerd:ID")); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(lines)
		if got := strings.Join(lines, ", "); got != c.want || w.limits(t, sandbox) != "" {
			t.Errorf("%s: %q is written, want %q; in force: %q", name, got, c.want, w.limits(t, sandbox))
		}
		if err := l.reopen(); err != nil { // there may be other disks
			t.Fatal(err)
		}
		const rules = "254:0 rbps=max wbps=7 riops=max wiops=max\n"
		if err := os.WriteFile(filepath.Join(w.root, "sys/fs/cgroup", sandbox, "io.max"), []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		lines = nil
		if err := l.prepare(t.Context(), w.plans, w.pod(c.annotations), container("web", webID, slice1+":cri-containerd:ID")); err != nil || len(lines) != 0 || w.limits(t, sandbox) != "254:0 wbps=7" {
			t.Errorf("%s: %v; %q is written to a group with rules: %q", name, err, lines, w.limits(t, sandbox))
		}
		if err := l.close(); err != nil {
			t.Error(err)
		}
	}
}

// The runtime makes a container: its disks are prepared beside that, and its start finds them so.
func TestAMadeContainerIsPrepared(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	w.serve(t)
	prepared := make(chan string, 64)
	w.mu.Lock()
	w.refuse = func(_, line string) error { prepared <- line; return nil }
	w.mu.Unlock()
	one := container("web", webID, plain1+"/ID")
	if _, err := w.runtime.CreateContainer(t.Context(), &api.CreateContainerRequest{Pod: w.pod(nil), Container: one}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if line := <-prepared; !strings.HasSuffix(line, " wbps=max") {
			t.Errorf("%q is written before the start", line)
		}
	}
	if err := w.runtime.StartContainer(t.Context(), &api.StartContainerRequest{Pod: w.pod(nil), Container: one}); err != nil || w.limits(t, plain1) == "" {
		t.Errorf("%v; in force: %q", err, w.limits(t, plain1))
	}
}

// One disk that cannot be prepared keeps no other from it. What is mounted since is prepared too, and after a while
// everything is once more: another disk may have the number of one that was taken away.
func TestOtherDisksArePrepared(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", inSlices+"/cri-containerd-ID.scope", noPlan)
	file := filepath.Join(w.root, "proc/1/mountinfo")
	both, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	mounted := func(without string) {
		t.Helper()
		var text string
		for line := range strings.Lines(string(both)) {
			if without == "" || !strings.Contains(line, without) {
				text += line
			}
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	broken := "254:0 "
	w.mu.Lock()
	w.refuse = func(_, line string) error {
		if strings.HasPrefix(line, broken) {
			return syscall.EINVAL
		}
		lines = append(lines, line)
		return nil
	}
	w.mu.Unlock()
	l := w.plugin.limiter()
	defer l.close()
	prepare := func() error {
		lines = nil
		return l.prepare(t.Context(), w.plans, w.pod(map[string]string{"weir.io/write": "1M"}), container("web", webID, slice1+":cri-containerd:ID"))
	}
	if err := prepare(); !errors.Is(err, syscall.EINVAL) || strings.Join(lines, ", ") != "254:16 wbps=max" {
		t.Errorf("with a broken disk: %v; %q", err, lines)
	}
	broken = "none"
	mounted("/dev/vdb")
	if err := errors.Join(l.reopen(), prepare()); err != nil || strings.Join(lines, ", ") != "254:0 wbps=max" {
		t.Errorf("without vdb: %v; %q", err, lines)
	}
	mounted("")
	if err := prepare(); err != nil || strings.Join(lines, ", ") != "254:16 wbps=max" {
		t.Errorf("with vdb: %v; %q", err, lines)
	}
	if err := prepare(); err != nil || len(lines) != 0 {
		t.Errorf("once more: %v; %q", err, lines)
	}
	if err := errors.Join(l.reopen(), prepare()); err != nil || len(lines) != 2 {
		t.Errorf("after a while: %v; %q", err, lines)
	}
}

// A pod that is made anew under its name has its rules first too: on record are those of the earlier pod.
func TestAPodOfAnEarlierNameHasItsRulesFirst(t *testing.T) {
	lab.Unit(t)
	n := newNode(t, 2)
	dir := filepath.Join(n.root, "var/lib/weir/plans")
	record := `{"target":"pod:prod/web-1","name":"pod:prod/web-1","plan":"small","limits":[{"device":"254:0","limit":{"wbps":10000000,"rbps":20000000}},{"device":"254:16","limit":{"wbps":10000000,"rbps":20000000}}],"group":7}`
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "pod%3Aprod%2Fweb-1.json"), []byte(record), 0o600)); err != nil {
		t.Fatal(err)
	}
	k := n.source(t, nil)
	if all, err := k.Look(t.Context(), []string{n.pods[1].GetUid()}); err != nil || len(all) != 1 || !all[0].Differs() {
		t.Fatalf("%+v, %v", all, err)
	}
	if got, want := n.limits(t, "/kubepods/burstable/pod"+n.pods[1].GetUid()), "254:0 rbps=20000000 wbps=10000000 254:16 rbps=20000000 wbps=10000000"; got != want {
		t.Errorf("it has %q, want %q", got, want)
	}
}

// The p99 is of the last answers, also where only each second container has limits.
func TestTheP99IsOfTheLastAnswers(t *testing.T) {
	lab.Unit(t)
	p := New("", agent.RuntimeOptions{})
	for i := range 4 * tookMost {
		p.count(func(s *agent.RuntimeStatus) { s.Starts++ })
		switch took := time.Second; {
		case i%2 == 1: // it has no limits
		case i < 2*tookMost:
			p.answered(took, true)
		default:
			p.answered(time.Millisecond, true)
		}
	}
	if got := p.Status().P99; got != time.Millisecond {
		t.Error(got)
	}
}
