package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	nri "github.com/containerd/nri/pkg/api"

	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/lab"
)

const (
	// podsRunning run on a node, by kubelet's default.
	podsRunning = 110
	// podsEachSec start, and end, in a second.
	podsEachSec = 10
	// podsFor is for how long they do, and how long they rest after that.
	podsFor = time.Minute
	// podsLimit is the plan's limit of reads, in bytes per second.
	podsLimit = 3_000_000
	// answerMost is how long a container may have to wait for weird, 99 times of a hundred.
	answerMost = 50 * time.Millisecond
	// podsMemory is what weird may have, in bytes.
	podsMemory = 60 << 20
)

// What weird costs on a node with 110 pods, whose runtime asks it before each start, ten times a second: no container
// starts without its rule or waits for long.
func TestPodsCost(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Root, lab.NoSystemd)
	disk := lab.RawDisk(t)
	// Reads: the pacer is about writes, and is a process of its own.
	w := newWeird(t, newEngine(t, e), on(disk, map[string]string{"small": fmt.Sprintf("read: %d, write-iops: 100", podsLimit)}, "allow-labels: [small]\n"))
	runInMemory(t)
	r := newRuntime(t, e.Cgroups.Blkio, e.Cgroups.Unified, e.Cgroups.IOInV2, disk)
	w.args = []string{"--nri", r.socket}
	cri := grpctest.Serve(t, r.answer)
	w.env = append(w.env, "CONTAINERD_ADDRESS="+cri, "CONTAINER_RUNTIME_ENDPOINT=unix://"+cri)
	w.start()
	lab.Await(t, patience, "weird at the runtime", func() bool { s := w.status().Runtime; return s != nil && s.Name != "" })
	bare := r.bare(t)
	for range podsRunning {
		r.start(t)
	}
	time.Sleep(startsFor) // what is needed at the start only is given back after it
	measure := func(what string, each func(i int)) {
		before, beside, began := w.cpu(), cpuOf(t, bare), time.Now()
		for i := range int(podsFor.Seconds()) * podsEachSec {
			each(i)
			time.Sleep(time.Until(began.Add(time.Duration(i+1) * time.Second / podsEachSec)))
		}
		share := func(took time.Duration) float64 { return 100 * float64(took) / float64(time.Since(began)) }
		t.Logf("%d pods, %s: %.2f %% of a processor, %.1f MiB; a plugin that does nothing: %.2f %%", len(r.pods), what, share(w.cpu()-before), float64(w.rss())/(1<<20), share(cpuOf(t, bare)-beside))
	}
	measure("nothing happens", func(int) {})
	r.answers = nil
	measure(fmt.Sprintf("%d starts and ends a second", podsEachSec), func(int) {
		r.start(t)
		r.end(t)
	})
	if _, p99 := logTimes(t, "weird's answers", r.answers); p99 > answerMost {
		t.Errorf("a hundredth of the containers waited longer than %v", answerMost)
	}
	if rss := w.rss(); rss > podsMemory {
		t.Errorf("weird has %d MiB", rss>>20)
	}
	if s := w.status().Runtime; s == nil || s.Late+s.Failed+s.Refused != 0 || s.Limited != s.Starts {
		t.Errorf("%+v", s)
	}
}

// startsFor is how long weird is said to be starting: 30 s after its start it gives memory back.
const startsFor = 35 * time.Second

// A podRuntime stands in for containerd where there is none: it asks NRI's plugins, and each of its containers is a
// process in a real cgroup.
type podRuntime struct {
	socket  string
	is      *adaptation.Adaptation
	dir     string // where pods have their groups
	path    string // the same, as kubelet says it
	v2      bool
	chooses string // the annotation: on v1 a container has the limit, for a pod's group binds no group below it
	rule    string // file of a limit
	want    string // what it has to have in it
	mu      sync.Mutex
	pods    []runtimePod
	begun   int
	answers []time.Duration // from the question before a start to its answer
}

// A runtimePod has one container, and one that holds the pod.
type runtimePod struct {
	of    *nri.PodSandbox
	main  *nri.Container
	dirs  []string  // of its groups, the outermost first
	sleep *exec.Cmd // its process
	pause *exec.Cmd // of the one that holds the pod
}

func newRuntime(t *testing.T, v1, unified string, v2 bool, disk *lab.TestDisk) *podRuntime {
	t.Helper()
	dir := t.TempDir()
	r := &podRuntime{socket: filepath.Join(dir, "nri.sock"), path: "/kubepods/besteffort", dir: v1, v2: v2,
		chooses: "weir.io/plan.web", rule: "blkio.throttle.read_bps_device", want: fmt.Sprintf("%s %d", disk.Number, podsLimit)}
	if v2 {
		r.dir, r.chooses, r.rule, r.want = unified, "weir.io/plan", "io.max", fmt.Sprintf("%s rbps=%d", disk.Number, podsLimit)
	}
	for _, name := range []string{"kubepods", "besteffort"} {
		r.dir = filepath.Join(r.dir, name)
		lab.Cgroup(t, r.dir)
		r.enable(t, r.dir)
	}
	var err error
	r.is, err = adaptation.New("containerd", "v2.1.9", func(ctx context.Context, tell adaptation.SyncCB) error {
		_, err := tell(ctx, nil, nil)
		return err
	}, func(context.Context, []*nri.ContainerUpdate) ([]*nri.ContainerUpdate, error) { return nil, nil },
		adaptation.WithSocketPath(r.socket), adaptation.WithPluginPath(dir), adaptation.WithPluginConfigPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.is.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for len(r.pods) > 0 {
			r.end(t)
		}
		r.is.Stop()
		for i := range r.begun { // nobody will ask this runtime again
			for _, name := range []string{"containerd%3Ak8s.io%2F" + containerID(i+1), "pod%3A" + podUID(i+1)} {
				if err := os.Remove("/var/lib/weir/plans/" + name + ".json"); err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
			}
		}
	})
	return r
}

// enable has the groups below one have its controllers.
func (r *podRuntime) enable(t *testing.T, dir string) {
	t.Helper()
	if !r.v2 {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+io +memory"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// podUID is the UID of the n-th pod.
func podUID(n int) string { return fmt.Sprintf("8f14e45f-ceea-467f-a8d0-%012x", n) }

// start makes a pod and starts its container, as kubelet and containerd do. The pod has its rule before its program runs.
func (r *podRuntime) start(t *testing.T) {
	t.Helper()
	r.begun++
	uid := podUID(r.begun)
	id, pause := containerID(r.begun), fmt.Sprintf("5e%062x", r.begun)
	path := r.path + "/pod" + uid
	p := runtimePod{
		of: &nri.PodSandbox{Id: pause, Name: fmt.Sprint("web-", r.begun), Uid: uid, Namespace: "prod", Labels: map[string]string{"app": "web"},
			Annotations: map[string]string{r.chooses: "small"}, Linux: &nri.LinuxPodSandbox{CgroupParent: path}},
		main: &nri.Container{Id: id, PodSandboxId: pause, Name: "web", Labels: map[string]string{"io.kubernetes.container.name": "web", "io.kubernetes.pod.uid": uid},
			Linux: &nri.LinuxContainer{CgroupsPath: path + "/" + id}},
		sleep: exec.Command("sleep", "3600"), pause: exec.Command("sleep", "3600"),
	}
	group := filepath.Join(r.dir, "pod"+uid)
	p.dirs = []string{group, filepath.Join(group, id), filepath.Join(group, pause)}
	for _, dir := range p.dirs {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir == group {
			r.enable(t, dir)
		}
	}
	for in, process := range map[string]*exec.Cmd{pause: p.pause, id: p.sleep} {
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(group, in, "cgroup.procs"), []byte(strconv.Itoa(process.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.mu.Lock()
	r.pods = append(r.pods, p) // from here on it is to be ended
	r.mu.Unlock()
	r.ask(t, func(ctx context.Context) error {
		if err := r.is.RunPodSandbox(ctx, &nri.RunPodSandboxRequest{Pod: p.of}); err != nil {
			return err
		}
		if _, err := r.is.CreateContainer(ctx, &nri.CreateContainerRequest{Pod: p.of, Container: p.main}); err != nil {
			return err
		}
		began := time.Now()
		err := r.is.StartContainer(ctx, &nri.StartContainerRequest{Pod: p.of, Container: p.main})
		r.answers = append(r.answers, time.Since(began))
		limited := group
		if !r.v2 {
			limited = filepath.Join(group, id)
		}
		if text, bad := os.ReadFile(filepath.Join(limited, r.rule)); err != nil || bad != nil || !strings.Contains(string(text), r.want) {
			t.Fatalf("a container is let go (%v), and the rule is %q (%v), want %q", err, text, bad, r.want)
		}
		return r.is.PostStartContainer(ctx, &nri.PostStartContainerRequest{Pod: p.of, Container: p.main})
	})
}

func containerID(number int) string { return fmt.Sprintf("3f%062x", number) }

// end ends the oldest pod.
func (r *podRuntime) end(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	p := r.pods[0]
	r.pods = r.pods[1:]
	r.mu.Unlock()
	for _, process := range []*exec.Cmd{p.sleep, p.pause} {
		_ = process.Process.Kill()
		_ = process.Wait()
	}
	for i := len(p.dirs) - 1; i >= 0; i-- {
		lab.Await(t, patience, "a pod's group to be empty", func() bool { err := os.Remove(p.dirs[i]); return err == nil || os.IsNotExist(err) })
	}
	r.ask(t, func(ctx context.Context) error {
		if _, err := r.is.StopContainer(ctx, &nri.StopContainerRequest{Pod: p.of, Container: p.main}); err != nil {
			return err
		}
		if err := r.is.RemoveContainer(ctx, &nri.RemoveContainerRequest{Pod: p.of, Container: p.main}); err != nil {
			return err
		}
		if err := r.is.StopPodSandbox(ctx, &nri.StopPodSandboxRequest{Pod: p.of}); err != nil {
			return err
		}
		return r.is.RemovePodSandbox(ctx, &nri.RemovePodSandboxRequest{Pod: p.of})
	})
}

// ask asks the plugins. No plugin comes half way, as with containerd.
func (r *podRuntime) ask(t *testing.T, all func(context.Context) error) {
	t.Helper()
	defer r.is.BlockPluginSync().Unblock()
	if err := all(context.Background()); err != nil {
		t.Error(err)
	}
}
