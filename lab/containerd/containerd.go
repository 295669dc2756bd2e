// Package containerd sets containerd up for tests of pods: its configuration, and images, for no registry can be
// reached.
package containerd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/lab"
)

const (
	// Socket is that of containerd's CRI.
	Socket = "/run/containerd/containerd.sock"
	// ConfigFile has its configuration.
	ConfigFile = "/etc/containerd/config.toml"

	dropIns = "/run/systemd/system/containerd.service.d"
)

// Config is its configuration, with NRI at a socket. systemd: the cgroup driver is systemd, else cgroupfs.
func Config(nri string, systemd bool) string {
	return fmt.Sprintf("version = 2\n[plugins.'io.containerd.nri.v1.nri']\ndisable = false\nsocket_path = %q\n"+
		"[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]\nruntime_type = 'io.containerd.runc.v2'\n"+
		"[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]\nSystemdCgroup = %v\n", nri, systemd)
}

// Unit has systemd's unit of containerd start the one in PATH until the end of the test: that of the guest's Debian, or
// one that the lab has built.
func Unit(t testing.TB) {
	t.Helper()
	path, err := exec.LookPath("containerd")
	if err != nil {
		t.Fatal(err)
	}
	if path == "/usr/bin/containerd" {
		return
	}
	text := fmt.Sprintf("[Service]\nExecStart=\nExecStart=%s\nEnvironment=PATH=%s\n", path, os.Getenv("PATH"))
	if err := errors.Join(os.MkdirAll(dropIns, 0o755), os.WriteFile(dropIns+"/lab.conf", []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	reload := func() {
		if out, err := exec.Command("systemctl", "daemon-reload").CombinedOutput(); err != nil {
			t.Errorf("systemctl daemon-reload: %v\n%s", err, out)
		}
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dropIns); err != nil {
			t.Error(err)
		}
		reload()
	})
	reload()
}

// SandboxImage is the name of the image with which it holds pods.
func SandboxImage(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("containerd", "config", "dump").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		for _, key := range []string{"sandbox_image", "sandbox"} { // before 2.0, and since
			if name, value, _ := strings.Cut(strings.TrimSpace(line), " = "); name == key {
				return strings.Trim(value, `"'`)
			}
		}
	}
	t.Fatal("containerd has no image for pods")
	return ""
}

// Import gives it the images of a file, for pods, and waits until the CRI has them under their names.
func Import(t testing.TB, file string, names ...string) {
	t.Helper()
	if out, err := exec.Command("ctr", "-n", "k8s.io", "images", "import", file).CombinedOutput(); err != nil {
		t.Fatalf("import %s: %v\n%s", file, err, out)
	}
	for _, name := range names { // the CRI hears of it a little later
		lab.Await(t, 20*time.Second, "image "+name, func() bool {
			answer, err := grpc.Call(t.Context(), Socket, "/runtime.v1.ImageService/ListImages", nil)
			return err == nil && bytes.Contains(answer, []byte(name))
		})
	}
}
