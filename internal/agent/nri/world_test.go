package nri

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/plans/planfile"
)

const (
	uid   = "8f14e45f-ceea-467f-a8d0-3f2a9c1b5d7e"
	webID = "3f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"
	logID = "4f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"

	plain1   = "/kubepods/burstable/pod" + uid
	slice1   = "kubepods-burstable-pod8f14e45f_ceea_467f_a8d0_3f2a9c1b5d7e.slice"
	inSlices = "/kubepods.slice/kubepods-burstable.slice/" + slice1
	volumes  = "/var/lib/kubelet/pods/" + uid + "/volumes/"
)

// patience is far longer than anything here takes.
const patience = 30 * time.Second

// A world is a copy of a machine with a pod of two containers, "web" and "log", a runtime on a
// socket, and the plugin.
type world struct {
	root    string
	socket  string // of the runtime; the plugin's leads there
	conns   []net.Conn
	name    string // of the runtime
	plugin  *Plugin
	runtime *adaptation.Adaptation

	mu      sync.Mutex
	plans   *plans.Config
	changed []string
	ended   []string
	begun   []string
	refuse  func(file, line string) error
	systemd func(context.Context) (*systemd.Conn, error)
}

// web has a disk of its own at /db, and log none; the root and /cache of both are on vda.
func files(version, group string) map[string]string {
	all := map[string]string{}
	mounts := "430 400 254:1 /c/rootfs / rw - ext4 /dev/vda1 rw\n431 430 254:1 " + volumes + "kubernetes.io~empty-dir/cache /cache rw - ext4 /dev/vda1 rw\n" +
		"432 430 0:99 " + volumes + "kubernetes.io~empty-dir/memory /memory rw - tmpfs tmpfs rw\n"
	for pid, id := range map[string]string{"4900": webID, "4910": logID, "4890": "s1"} { // s1 holds the pod
		at := strings.Replace(group, "ID", id, 1)
		all["proc/"+pid+"/cgroup"] = "0::" + at + "\n3:blkio:" + at + "\n"
		all["proc/"+pid+"/mountinfo"] = mounts
		if pid == "4900" {
			all["proc/"+pid+"/mountinfo"] += "440 430 254:16 / /db rw - xfs /dev/vdb rw\n"
		}
		for _, g := range []string{at, filepath.Dir(at)} {
			dir := "sys/fs/cgroup" + g + "/"
			if version == "v1" {
				dir = "sys/fs/cgroup/blkio" + g + "/"
				for _, file := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
					all[dir+"blkio.throttle."+file+"_device"] = ""
				}
			}
			all[dir+"cgroup.procs"], all[dir+"cgroup.controllers"], all[dir+"io.max"] = "", "io memory\n", ""
			if g == at {
				all[dir+"cgroup.procs"] = pid + "\n"
			}
		}
	}
	return all
}

func newWorld(t testing.TB, version, group, config string) *world {
	t.Helper()
	return newWorldWith(t, version, config, files(version, group))
}

// newWorldWith is newWorld with other files than those of a pod of two containers.
func newWorldWith(t testing.TB, version, config string, files map[string]string) *world {
	t.Helper()
	w := &world{name: "containerd"}
	h := hosttest.Open(t, version, files, host.Options{})
	w.root = h.Root
	mounts := filepath.Join(h.Root, "proc/1/mountinfo")
	text, err := os.ReadFile(mounts)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "50 21 254:16 / "+volumes+"kubernetes.io~csi/pvc-1/mount rw - xfs /dev/vdb rw\n"+
		"51 21 0:99 / "+volumes+"kubernetes.io~csi/pvc-memory/mount rw - tmpfs tmpfs rw\n"...)
	if err := os.WriteFile(mounts, text, 0o600); err != nil {
		t.Fatal(err)
	}
	w.set(t, config)
	w.socket = filepath.Join(t.TempDir(), "nri.sock")
	w.plugin = New(w.socket+".plugin", agent.RuntimeOptions{Log: slog.New(slog.NewTextHandler(testLog{t}, nil)),
		Open: func() (*host.Host, error) {
			w.mu.Lock()
			o := host.Options{Root: w.root, Systemd: w.systemd}
			w.mu.Unlock()
			h, err := host.Open(o)
			if err == nil {
				var k *hosttest.Kernel
				if k, err = hosttest.StandIn(h); err == nil {
					k.Refuse = func(file, line string) error {
						w.mu.Lock()
						refuse := w.refuse
						w.mu.Unlock()
						if refuse == nil {
							return nil
						}
						return refuse(file, line)
					}
				}
			}
			return h, err
		},
		Plans: func() *plans.Config { w.mu.Lock(); defer w.mu.Unlock(); return w.plans },
		Begun: func(b *planned.Birth, kind, name string) {
			if b != nil {
				if err := b.Record(); err != nil {
					t.Error(err)
				}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.begun = append(w.begun, kind+":"+name)
		},
		Changed: func(kind string) { w.mu.Lock(); defer w.mu.Unlock(); w.changed = append(w.changed, kind) },
		Ended: func(kind, name string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ended = append(w.ended, kind+":"+name)
		}})
	w.plugin.answer = patience // the test itself may wait for a processor
	return w
}

// testLog is a test's log.
type testLog struct{ t testing.TB }

func (l testLog) Write(text []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(text)))
	return len(text), nil
}

func (w *world) set(t testing.TB, config string) {
	t.Helper()
	c := read(t, config)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans = c
}

// read reads plans as an agent does that serves a runtime.
func read(t testing.TB, config string) *plans.Config {
	t.Helper()
	c, err := planfile.Read([]plans.File{{Name: "a.yaml", Text: []byte(config)}})
	if err != nil {
		t.Fatal(err)
	}
	c.Annotated = true
	return c
}

// serve starts a runtime, and the plugin until the end of the test.
func (w *world) serve(t *testing.T) {
	t.Helper()
	w.start(t)
	w.forward(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan bool)
	go func() { w.plugin.Run(ctx); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
	w.await(t, "the plugin", func() bool { return w.plugin.Status().Runtime != "" && w.told("pod", "containerd") })
	w.joined()
}

// joined waits until the runtime asks a plugin that it has told of all there is: until then it makes no container.
func (w *world) joined() { w.runtime.BlockPluginSync().Unblock() }

// listen takes the plugin's connections.
func (w *world) listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", w.socket+".plugin")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// forward takes connections to the runtime.
func (w *world) forward(t *testing.T) {
	t.Helper()
	l := w.listen(t)
	t.Cleanup(func() { l.Close(); w.cut() })
	go func() {
		for {
			plugin, err := l.Accept()
			if err != nil {
				return
			}
			runtime, err := net.Dial("unix", w.socket)
			if err != nil {
				plugin.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, plugin, runtime)
			w.mu.Unlock()
			go func() { _, _ = io.Copy(plugin, runtime); plugin.Close() }()
			go func() { _, _ = io.Copy(runtime, plugin); runtime.Close() }()
		}
	}()
}

// cut ends all connections, as the end of a runtime does.
func (w *world) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// start starts a runtime. It waits long for answers: how soon they come is the plugin's doing.
func (w *world) start(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	r, err := adaptation.New(w.name, "v2.1.9", func(ctx context.Context, sync adaptation.SyncCB) error {
		_, err := sync(ctx, []*api.PodSandbox{w.pod(nil)}, nil)
		return err
	}, func(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) { return nil, nil },
		adaptation.WithSocketPath(w.socket), adaptation.WithPluginPath(dir), adaptation.WithPluginConfigPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	adaptation.SetPluginRequestTimeout(patience)
	w.runtime = r
	t.Cleanup(r.Stop)
}

func (w *world) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s: %+v", what, w.plugin.Status())
		}
	}
}

// told reports whether the agent was told of these kinds, in this order, and forgets it.
func (w *world) told(kinds ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Join(w.changed, " ") != strings.Join(kinds, " ") {
		return false
	}
	w.changed = nil
	return true
}

func (w *world) pod(annotations map[string]string) *api.PodSandbox {
	return &api.PodSandbox{Id: "s1", Name: "web-0", Uid: uid, Namespace: "prod", Labels: map[string]string{"tier": "gold"}, Annotations: annotations, Linux: &api.LinuxPodSandbox{}}
}

func container(name, id, path string) *api.Container {
	return &api.Container{Id: id, PodSandboxId: "s1", Name: name, Labels: map[string]string{"io.kubernetes.container.name": name, "io.kubernetes.pod.uid": uid},
		Linux: &api.LinuxContainer{CgroupsPath: strings.Replace(path, "ID", id, 1)}}
}

// begin has the runtime make and start a container of the pod.
func (w *world) begin(t *testing.T, pod *api.PodSandbox, c *api.Container) error {
	t.Helper()
	defer w.runtime.BlockPluginSync().Unblock() // as containerd does, so that no plugin comes half way
	if _, err := w.runtime.CreateContainer(t.Context(), &api.CreateContainerRequest{Pod: pod, Container: c}); err != nil {
		return err
	}
	return w.runtime.StartContainer(t.Context(), &api.StartContainerRequest{Pod: pod, Container: c})
}

// limits is what a group's io.max has, with the rates that are numbers.
func (w *world) limits(t *testing.T, group string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.root, "sys/fs/cgroup", group, "io.max"))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, word := range strings.Fields(string(text)) {
		if !strings.HasSuffix(word, "=max") {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}
