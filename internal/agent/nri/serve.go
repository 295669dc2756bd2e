package nri

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/base/plain"
)

// Run serves the runtime until the context ends. It connects again whenever it has to.
func (p *Plugin) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { p.work(ctx) })
	running.Go(func() { p.record(ctx) })
	running.Go(func() { p.tell(ctx) })
	running.Go(func() { p.prepareAll(ctx) })
	defer func() {
		running.Wait()
		p.recordLeft(ctx)
	}()
	for wait := reconnectLeast; ; wait = min(2*wait, reconnectMost) {
		registered, err := p.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if registered {
			wait = reconnectLeast
		}
		if err == nil {
			err = errors.New("the runtime has closed the connection")
		}
		p.lost(err, wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// lost notes that the runtime is not served.
func (p *Plugin) lost(err error, wait time.Duration) {
	p.mu.Lock()
	was := p.status
	p.status.Runtime, p.status.Error = "", plain.Brief(err.Error())
	if p.status.Reconnects++; was.Runtime != "" || p.status.Since.IsZero() {
		p.status.Since = time.Now()
	}
	now := p.status
	p.mu.Unlock()
	if was.Error != now.Error || was.Runtime != "" {
		p.options.Log.Warn("the container runtime does not tell weir what it starts", "socket", p.socket, "error", now.Error, "again_in", wait)
	}
}

// serve serves one connection. It reports whether the runtime has taken the plugin.
func (p *Plugin) serve(ctx context.Context) (registered bool, err error) {
	conn, err := (&net.Dialer{Timeout: registerMost}).DialContext(ctx, "unix", p.socket)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	s := &session{Plugin: p, registered: make(chan struct{})}
	st, err := stub.New(s, stub.WithPluginName(name), stub.WithPluginIdx(index), stub.WithConnection(conn),
		stub.WithLogger(quiet{p.options.Log}), stub.WithOnClose(func() {}))
	if err != nil {
		return false, err
	}
	ended := make(chan error, 1)
	go func() { ended <- st.Run(ctx) }()
	select {
	case err := <-ended:
		return s.isRegistered(), err
	case <-s.registered:
		return true, <-ended
	case <-time.After(p.patience):
	case <-ctx.Done():
	}
	// The stub waits to be configured, whatever becomes of the connection.
	_ = conn.Close()
	if c, is := st.(configurer); is {
		_, _ = c.Configure(ctx, &api.ConfigureRequest{})
	}
	return false, errors.Join(fmt.Errorf("it has not configured the plugin within %v", p.patience), <-ended)
}

type configurer interface {
	Configure(context.Context, *api.ConfigureRequest) (*api.ConfigureResponse, error)
}

// A session is the plugin on one connection. Its methods are what the runtime calls.
type session struct {
	*Plugin
	registered chan struct{}
	once       sync.Once
}

func (s *session) isRegistered() bool {
	select {
	case <-s.registered:
		return true
	default:
		return false
	}
}

var errGivenUp = errors.New("weir has given up this connection")

// Configure is called when the runtime takes the plugin.
func (s *session) Configure(_ context.Context, _, runtime, version string) (api.EventMask, error) {
	if runtime == "" {
		return 0, errGivenUp
	}
	s.once.Do(func() { close(s.registered) })
	s.count(func(st *agent.RuntimeStatus) {
		st.Runtime, st.Since, st.Error = plain.Brief(runtime+" "+version), time.Now(), ""
	})
	s.say(slog.LevelInfo, "the container runtime tells weir what it starts", "runtime", plain.Brief(runtime), "version", plain.Brief(version))
	return 0, nil // all that it has methods for
}

// wrongMost bounds the pods that are named in the log at once.
const wrongMost = 20

// Synchronize is called with all that there is, after Configure. Their limits are the agent's to set:
// they run already. Pods that have ended are among them until the runtime forgets them; of those none is refused.
func (s *session) Synchronize(_ context.Context, pods []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	there := map[string]bool{}
	for _, c := range containers {
		if c.GetState() != api.ContainerState_CONTAINER_STOPPED {
			there[c.GetPodSandboxId()] = true
		}
	}
	wrong := 0
	for _, pod := range pods {
		if wrong < wrongMost && there[pod.GetId()] && s.check(pod) != nil {
			wrong++
		}
	}
	s.say(slog.LevelInfo, "the container runtime has told weir what runs", "pods", len(pods), "containers", len(containers))
	s.lookAgain()
	return nil, nil
}

// CreateContainer is called before a container is made. It is the one call in which a pod can be refused: CRI-O ignores
// errors of RunPodSandbox and StartContainer, and containerd 2.0 and 2.1 keep what holds a pod, and its name, for ever if
// RunPodSandbox fails.
func (s *session) CreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	err := s.check(pod)
	if err == nil {
		s.prepare(pod, container)
	}
	return nil, nil, err
}

// StartContainer is called when a container's group and first process are there, and before its
// program.
func (s *session) StartContainer(ctx context.Context, pod *api.PodSandbox, container *api.Container) error {
	return s.limit(ctx, pod, container)
}

// PostUpdateContainer is called when kubelet has changed a container's resources.
func (s *session) PostUpdateContainer(context.Context, *api.PodSandbox, *api.Container) error {
	s.lookAgain()
	return nil
}

// RemoveContainer is called when a container is gone. That of a pod the tree of groups tells: another pod can have its name
// by the time that kubelet removes it.
func (s *session) RemoveContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	s.options.Ended("containerd", listedContainer(listedPod(pod), container).Name)
	return nil
}

// quiet is the stub's log: its errors. It warns of versions that it does not know, such as Debian's.
type quiet struct{ log *slog.Logger }

func (quiet) Debugf(context.Context, string, ...any) {}
func (quiet) Infof(context.Context, string, ...any)  {}
func (quiet) Warnf(context.Context, string, ...any)  {}
func (q quiet) Errorf(ctx context.Context, format string, args ...any) {
	q.log.WarnContext(ctx, "NRI: "+plain.Brief(fmt.Sprintf(format, args...)))
}
