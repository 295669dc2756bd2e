package full

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/busybox"
	"github.com/weir-io/weir/lab/containerd"
)

// A limit on a pod of containerd's CRI binds its two containers together.
func TestPod(t *testing.T) {
	e := lab.Need(t, lab.Containerd, lab.Systemd, lab.V2, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	share(t, "containerd")
	c := newCRI(t)
	const uid = "8f14e45f-ceea-467f-a8d0-3f2a9c1b5d7e"
	group := "/kubepods/besteffort/pod" + uid
	config := podConfig(uid, group)
	pod := c.run(t, config)
	for _, name := range []string{"first", "second"} {
		loop := strings.ReplaceAll(endless, "/data/f", "/data/"+name)
		c.container(t, pod, config, name, disk.Dir, "/bin/sh", "-c", loop)
	}
	dir := filepath.Join(e.Cgroups.Unified, group)
	mustWeir(t, "set", "pod:"+uid, "--write", "1MB/s", "--on", disk.Dir)
	if shown, _ := mustWeir(t, "show", "--for", "0"); !strings.Contains(shown, "pod:default/web  ") {
		t.Errorf("weir show:\n%s", shown)
	}
	mustWeir(t, "clear", "pod:default/web", "--quiet")
	holds(t, e, disk, "pod:default/web", dir, "kubernetes does not know this limit")
	shared := chargedTo(t, dir, disk)
	for id, n := range shared {
		if n < 1<<20 {
			t.Errorf("container %s has written %d bytes: %v", id, n, shared)
		}
	}
	if len(shared) < 2 {
		t.Errorf("the pod's groups have written %v", shared)
	}
}

// chargedTo is what the groups below one have written to a disk, those that have.
func chargedTo(t *testing.T, dir string, disk *lab.TestDisk) map[string]int64 {
	t.Helper()
	children, err := filepath.Glob(filepath.Join(dir, "*/io.stat"))
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]int64{}
	for _, file := range children {
		if n, there := lab.Charged(filepath.Dir(file), disk.Number)(); there && n > 0 {
			written[filepath.Base(filepath.Dir(file))] = n
		}
	}
	return written
}

// A cri is containerd's, asked as kubelet does.
type cri struct{ image string }

// newCRI has an image for pods and containers, under the name that the runtime is set to
// for its pods: no registry can be reached.
func newCRI(t *testing.T) cri {
	t.Helper()
	c := cri{containerd.SandboxImage(t)}
	if _, err := os.Stat("/etc/resolv.conf"); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile("/etc/resolv.conf", nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	containerd.Import(t, busybox.Image(t, c.image), c.image)
	return c
}

// message makes one of protobuf's with strings and messages; empty ones are left out.
func message(fields map[grpc.FieldNumber]string) string {
	var m []byte
	for number := grpc.FieldNumber(1); number < 20; number++ {
		if text := fields[number]; text != "" {
			m = grpc.AppendString(m, number, text)
		}
	}
	return string(m)
}

// podConfig is that of pod web, in the host's network: a PodSandboxConfig.
func podConfig(uid, group string) string {
	network := string(grpc.AppendNumber(nil, 1, 2)) // NamespaceMode NODE
	return message(map[grpc.FieldNumber]string{
		1: message(map[grpc.FieldNumber]string{1: "web", 2: uid, 3: "default"}),
		8: message(map[grpc.FieldNumber]string{1: group, 2: message(map[grpc.FieldNumber]string{1: network})}),
	})
}

// ask makes a call, and returns the id that its answer begins with.
func (cri) ask(t *testing.T, method string, request string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandMax/3)
	defer cancel()
	began := time.Now()
	defer func() { t.Logf("%.1fs %s", time.Since(began).Seconds(), method) }()
	answer, err := grpc.Call(ctx, containerd.Socket, "/runtime.v1.RuntimeService/"+method, []byte(request))
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	id := ""
	if err := grpc.Fields(answer, func(number grpc.FieldNumber, value []byte) error {
		if number == 1 {
			id = string(value)
		}
		return nil
	}); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return id
}

func (c cri) run(t *testing.T, config string) (pod string) {
	t.Helper()
	pod = c.ask(t, "RunPodSandbox", message(map[grpc.FieldNumber]string{1: config}))
	t.Cleanup(func() {
		c.ask(t, "StopPodSandbox", message(map[grpc.FieldNumber]string{1: pod}))
		c.ask(t, "RemovePodSandbox", message(map[grpc.FieldNumber]string{1: pod}))
	})
	return pod
}

// container starts one with a directory of the host's at /data.
func (c cri) container(t *testing.T, pod, podConfig, name, dir string, command ...string) {
	t.Helper()
	config := grpc.AppendString(nil, 1, message(map[grpc.FieldNumber]string{1: name}))
	config = grpc.AppendString(config, 2, message(map[grpc.FieldNumber]string{1: c.image}))
	for _, word := range command {
		config = grpc.AppendString(config, 3, word)
	}
	config = grpc.AppendString(config, 7, message(map[grpc.FieldNumber]string{1: "/data", 2: dir}))
	id := c.ask(t, "CreateContainer", message(map[grpc.FieldNumber]string{1: pod, 2: string(config), 3: podConfig}))
	c.ask(t, "StartContainer", message(map[grpc.FieldNumber]string{1: id}))
}
