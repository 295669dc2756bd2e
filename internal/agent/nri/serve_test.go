package nri

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"

	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/lab"
)

// When the runtime restarts, the plugin is back soon, and the agent looks at what has started meanwhile.
func TestTheRuntimeRestarts(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	w.serve(t)
	for range 3 {
		w.runtime.Stop()
		w.cut()
		w.await(t, "loss", func() bool { return w.plugin.Status().Runtime == "" })
		if s := w.plugin.Status(); s.Error == "" || s.Reconnects == 0 {
			t.Errorf("%+v", s)
		}
		w.start(t)
		w.await(t, "plugin", func() bool { return w.plugin.Status().Runtime == "containerd v2.1.9" && w.told("pod", "containerd") })
		w.joined()
	}
	if err := w.begin(t, w.pod(nil), container("web", webID, plain1+"/ID")); err != nil || w.limits(t, plain1) == "" {
		t.Error(err)
	}
	for _, err := range []error{
		w.runtime.PostUpdateContainer(t.Context(), &api.PostUpdateContainerRequest{Pod: w.pod(nil), Container: container("web", webID, plain1+"/ID")}),
		w.runtime.RemoveContainer(t.Context(), &api.RemoveContainerRequest{Pod: w.pod(nil), Container: container("web", webID, plain1+"/ID")}),
		w.runtime.RemovePodSandbox(t.Context(), &api.RemovePodSandboxRequest{Pod: w.pod(nil)}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if !w.told("pod", "containerd") || fmt.Sprint(w.ended) != "[containerd:k8s.io/"+webID+"]" {
		t.Errorf("%v, %v", w.changed, w.ended)
	}
}

// A runtime that takes the connection and says nothing does not keep the plugin for ever.
func TestASilentRuntime(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	l := w.listen(t)
	defer l.Close()
	taken := make(chan net.Conn, 16)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			taken <- conn
		}
	}()
	w.plugin.patience = 50 * time.Millisecond
	for range 3 {
		began := time.Now()
		registered, err := w.plugin.serve(t.Context())
		if registered || err == nil || time.Since(began) > patience/2 {
			t.Errorf("%v, %v, after %v", registered, err, time.Since(began))
		}
		(<-taken).Close()
	}
}

// A half runtime takes plugins, and configures none.
type half struct{ taken chan bool }

func (h half) RegisterPlugin(context.Context, *api.RegisterPluginRequest) (*api.Empty, error) {
	h.taken <- true
	return &api.Empty{}, nil
}

func (half) UpdateContainers(context.Context, *api.UpdateContainersRequest) (*api.UpdateContainersResponse, error) {
	return &api.UpdateContainersResponse{}, nil
}

// weird ends at once, also while it waits for a runtime to configure the plugin.
func TestItEndsBesideAHalfRuntime(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	l := w.listen(t)
	defer l.Close()
	h := half{make(chan bool, 1)}
	server, err := ttrpc.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	api.RegisterRuntimeService(server, h)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		mux := multiplex.Multiplex(conn)
		if in, err := mux.Listen(multiplex.RuntimeServiceConn); err == nil {
			_ = server.Serve(t.Context(), in) // until the test ends
		}
	}()
	w.plugin.patience = 2 * patience
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := w.plugin.serve(ctx); ended <- err }()
	<-h.taken
	time.Sleep(100 * time.Millisecond) // until the plugin has read that; before, there is less to wait for
	stop()
	select {
	case err := <-ended:
		t.Logf("it ends with %v", err)
	case <-time.After(patience / 2):
		t.Error("it waits for the runtime")
	}
}

// What waits to be put on record when weird ends is put there.
func TestTheLastRecordsAreWritten(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	h, err := w.plugin.options.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	io, err := h.IO()
	if err != nil {
		t.Fatal(err)
	}
	pod, m := listedPod(w.pod(nil)), planned.Manager{Host: h, Config: w.plans}
	its, err := groupOf(h.FS, io, container("web", webID, plain1+"/ID"))
	if err != nil {
		t.Fatal(err)
	}
	target, err := podTarget(h, its, pod)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 { // what a goroutine finds first is chance
		w.plugin.notes <- m.NoteOf(m.Given(t.Context(), pod, target))
		ended, stop := context.WithCancel(t.Context())
		stop()
		if w.plugin.Run(ended); w.records(t) != 1 {
			t.Fatal("there is no record")
		}
		if err := os.RemoveAll(filepath.Join(w.root, "var/lib/weir/plans")); err != nil {
			t.Fatal(err)
		}
	}
}

// Pods that have ended are in the runtime's list until it forgets them. One with wrong annotations is refused only while
// something of it is there.
func TestEndedPodsAreNotRefused(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2", plain1+"/ID", config)
	s := &session{Plugin: w.plugin}
	wrong := w.pod(map[string]string{"weir.io/write": "10MB/s"})
	stopped, runs := container("web", webID, plain1+"/ID"), container("log", webID, plain1+"/ID")
	stopped.State, runs.State = api.ContainerState_CONTAINER_STOPPED, api.ContainerState_CONTAINER_RUNNING
	for _, c := range []struct {
		containers []*api.Container
		want       uint64
	}{{nil, 0}, {[]*api.Container{stopped}, 0}, {[]*api.Container{stopped, runs}, 1}} {
		if _, err := s.Synchronize(t.Context(), []*api.PodSandbox{wrong}, c.containers); err != nil {
			t.Fatal(err)
		}
		if got := w.plugin.Status().Refused; got != c.want {
			t.Errorf("with %d containers: %d refused, want %d", len(c.containers), got, c.want)
		}
	}
}
