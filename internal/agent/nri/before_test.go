package nri

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/base/haste"
	"github.com/weir-io/weir/internal/daemon/systemd"
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
