package full

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-io/weir/contrib"
	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/containerd"
	"github.com/weir-io/weir/tools/image/oci"
)

// weird as Kubernetes runs it: from the image, with the mounts and capabilities of the manifest, and
// with no others.
func TestNRIInAPod(t *testing.T) {
	e := needNRI(t, lab.Containerd, lab.Systemd, lab.V2, lab.FS("ext4"))
	for _, driver := range []string{"cgroupfs", "systemd"} {
		t.Run(driver, func(t *testing.T) {
			if driver == "systemd" {
				lab.Need(t, lab.Whole)
			}
			n := prepareNRI(t, e, driver)
			n.socket = health.Socket
			n.deploy(t)
			n.firstWrites(t, 3)
			n.shows(t, "pod-1")
			t.Run("refused", func(t *testing.T) { // as TestNRI has it
				lab.Need(t, lab.Whole)
				n.refused(t)
			})
		})
	}
}

// A daemonPod is what the manifest says of weird's pod.
type daemonPod struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				HostPID    bool `yaml:"hostPID"`
				Containers []daemonContainer
				Volumes    []struct {
					Name     string
					HostPath struct{ Path, Type string } `yaml:"hostPath"`
				}
			}
		}
	}
}

type daemonContainer struct {
	Name, Image     string
	Args            []string
	Env             []struct{ Name, Value string }
	SecurityContext struct {
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		Privileged               bool
		Capabilities             struct{ Drop, Add []string }
	} `yaml:"securityContext"`
	VolumeMounts []struct {
		Name             string
		MountPath        string `yaml:"mountPath"`
		MountPropagation string `yaml:"mountPropagation"`
		ReadOnly         bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

// deploy imports the image, and starts weird's pod of the manifest.
func (n *nri) deploy(t *testing.T) {
	t.Helper()
	var pod daemonPod
	for d := yaml.NewDecoder(strings.NewReader(contrib.Kubernetes)); pod.Kind != "DaemonSet"; {
		pod = daemonPod{}
		if err := d.Decode(&pod); err != nil {
			t.Fatal(err)
		}
	}
	spec := pod.Spec.Template.Spec
	c := spec.Containers[0]
	if !spec.HostPID || c.SecurityContext.Privileged || c.Name != "weird" {
		t.Fatalf("%+v", spec)
	}
	_, version, _ := strings.Cut(c.Image, ":")
	run(t, "ctr", "-n", "k8s.io", "images", "import", "--no-unpack", imageOfWeir(t, oci.Repository+":"+version))
	name := "docker.io/library/" + c.Image // as kubelet asks for it
	lab.Await(t, 20*time.Second, "the image", func() bool {
		answer, err := grpc.Call(t.Context(), containerd.Socket, "/runtime.v1.ImageService/ListImages", nil)
		return err == nil && bytes.Contains(answer, []byte(name))
	})

	hosts := map[string]string{"plans": filepath.Dir(n.file)}
	for _, v := range spec.Volumes {
		if v.HostPath.Path == "" {
			if hosts[v.Name] == "" { // an emptyDir
				hosts[v.Name] = t.TempDir()
			}
			continue
		}
		hosts[v.Name] = v.HostPath.Path
		if v.HostPath.Type == "DirectoryOrCreate" {
			if err := os.MkdirAll(v.HostPath.Path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	logs := t.TempDir()
	namespaces := string(grpc.AppendNumber(grpc.AppendNumber(nil, 1, 2), 2, 2)) // NODE, for the network and for processes
	uid := "8f14e45f-ceea-467f-a8d0-ffffffffffff"
	parent, _ := n.group(uid)
	sandboxConfig := message(map[grpc.FieldNumber]string{
		1: message(map[grpc.FieldNumber]string{1: "weir", 2: uid, 3: "kube-system"}), 3: logs,
		8: message(map[grpc.FieldNumber]string{1: parent, 2: message(map[grpc.FieldNumber]string{1: namespaces})}),
	})
	sandbox := n.cri.run(t, sandboxConfig)
	config := n.containerConfig(c, name, namespaces, hosts)
	id := n.cri.ask(t, "CreateContainer", message(map[grpc.FieldNumber]string{1: sandbox, 2: config, 3: sandboxConfig}))
	log := func() string {
		text, _ := os.ReadFile(filepath.Join(logs, "weird.log")) // it may not be there yet
		return string(text)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("weird:\n%s", log())
		}
	})
	n.cri.ask(t, "StartContainer", message(map[grpc.FieldNumber]string{1: id}))
	lab.Await(t, 20*time.Second, "weird at containerd", func() bool {
		r, err := http.Get("http://127.0.0.1:9848/readyz")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		_, _ = io.Copy(io.Discard, r.Body)
		return r.StatusCode == http.StatusOK
	})
	n.inside = func(t *testing.T, command ...string) string {
		t.Helper()
		request := grpc.AppendString(nil, 1, id)
		for _, word := range append([]string{"/usr/bin/weird", "enter"}, command...) {
			request = grpc.AppendString(request, 2, word)
		}
		ctx, cancel := context.WithTimeout(t.Context(), commandMax/3)
		defer cancel()
		answer, err := grpc.Call(ctx, containerd.Socket, "/runtime.v1.RuntimeService/ExecSync", grpc.AppendNumber(request, 3, 60))
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
}

// containerConfig is weird's container as the CRI has it: a ContainerConfig. Paths in /proc and /sys
// are hidden as kubelet has it for every container (kubernetes, pkg/securitycontext).
func (n *nri) containerConfig(c daemonContainer, image, namespaces string, hosts map[string]string) string {
	config := grpc.AppendString(nil, 1, message(map[grpc.FieldNumber]string{1: c.Name}))
	config = grpc.AppendString(config, 2, message(map[grpc.FieldNumber]string{1: image}))
	for _, word := range c.Args {
		config = grpc.AppendString(config, 4, word)
	}
	for _, v := range c.Env {
		config = grpc.AppendString(config, 6, message(map[grpc.FieldNumber]string{1: v.Name, 2: v.Value}))
	}
	for _, m := range c.VolumeMounts {
		host := hosts[m.Name]
		if _, err := os.Stat(host); err != nil && m.Name == "tracing" {
			continue // this kernel has none, and weir trace is not asked for
		}
		one := grpc.AppendString(grpc.AppendString(nil, 1, m.MountPath), 2, host)
		if m.ReadOnly {
			one = grpc.AppendNumber(one, 3, 1)
		}
		if m.MountPropagation == "HostToContainer" {
			one = grpc.AppendNumber(one, 5, 1)
		}
		config = grpc.AppendString(config, 7, string(one))
	}
	for key, value := range map[string]string{"io.kubernetes.container.name": c.Name, "io.kubernetes.pod.uid": "8f14e45f-ceea-467f-a8d0-ffffffffffff"} {
		config = grpc.AppendString(config, 9, message(map[grpc.FieldNumber]string{1: key, 2: value}))
	}
	config = grpc.AppendString(config, 11, "weird.log")
	var capabilities []byte
	for _, name := range c.SecurityContext.Capabilities.Add {
		capabilities = grpc.AppendString(capabilities, 1, name)
	}
	for _, name := range c.SecurityContext.Capabilities.Drop {
		capabilities = grpc.AppendString(capabilities, 2, name)
	}
	secure := grpc.AppendString(nil, 1, string(capabilities))
	secure = grpc.AppendString(secure, 3, namespaces)
	secure = grpc.AppendString(secure, 5, string(grpc.AppendNumber(nil, 1, 0)))
	if c.SecurityContext.ReadOnlyRootFilesystem {
		secure = grpc.AppendNumber(secure, 7, 1)
	}
	if may := c.SecurityContext.AllowPrivilegeEscalation; may != nil && !*may {
		secure = grpc.AppendNumber(secure, 11, 1)
	}
	for _, hidden := range []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"} {
		secure = grpc.AppendString(secure, 13, hidden)
	}
	for _, fixed := range []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"} {
		secure = grpc.AppendString(secure, 14, fixed)
	}
	if _, err := os.Stat("/proc/sys/kernel/seccomp"); err == nil {
		secure = grpc.AppendString(secure, 15, "") // a profile of type 0, RuntimeDefault
	}
	return string(grpc.AppendString(config, 15, string(grpc.AppendString(nil, 2, string(secure)))))
}

// imageOfWeir writes the image of the weir and weird that are in PATH.
func imageOfWeir(t *testing.T, name string) string {
	t.Helper()
	var binaries [2][]byte
	for i, program := range []string{"weir", "weird"} {
		at, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		if binaries[i], err = os.ReadFile(at); err != nil {
			t.Fatal(err)
		}
	}
	_, version, _ := strings.Cut(name, ":")
	path := filepath.Join(t.TempDir(), "weir.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := oci.Write(f, oci.Weir(name, version, "amd64", time.Unix(0, 0), binaries[0], binaries[1], nil)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// shows has weir in the pod look at another one.
func (n *nri) shows(t *testing.T, pod string) {
	t.Helper()
	for _, c := range []struct{ verb, want string }{{"show", "2 MB/s  "}, {"why", "pod:default/" + pod}} {
		if got := n.inside(t, "/usr/bin/weir", c.verb, "pod:default/"+pod); !strings.Contains(got, c.want) {
			t.Errorf("weir %s in the pod: %q", c.verb, got)
		}
	}
	if got := n.inside(t, "/usr/bin/weird", "status"); !strings.Contains(got, fmt.Sprintf("pod:default/%s ", pod)) {
		t.Errorf("weird status in the pod: %q", got)
	}
}
