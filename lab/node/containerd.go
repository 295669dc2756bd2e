package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/lab"
)

const (
	criSocket = "/run/containerd/containerd.sock"
	nriSocket = "/var/run/nri/nri.sock"
	// image is that of the pods' containers: busybox.
	image = "docker.io/library/weir-lab:1"
)

// containerd is its configuration.
func (n *Node) containerd() string {
	return fmt.Sprintf("version = 2\n[plugins.'io.containerd.nri.v1.nri']\ndisable = false\nsocket_path = %q\n"+
		"[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]\nruntime_type = 'io.containerd.runc.v2'\n"+
		"[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]\nSystemdCgroup = %v\n", nriSocket, n.Driver == "systemd")
}

// importImages gives containerd the image of the containers, and the same under the name of the image that it
// holds a pod with.
func (n *Node) importImages(t testing.TB) {
	t.Helper()
	out, err := exec.Command("containerd", "config", "dump").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{n.image}
	for line := range strings.Lines(string(out)) {
		if _, value, ok := strings.Cut(line, "sandbox_image = "); ok {
			names = append(names, strings.Trim(strings.TrimSpace(value), `"'`))
		}
	}
	if len(names) != 2 {
		t.Fatalf("containerd's images for pods: %q", names)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(file, archive(t, names), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "ctr", "-n", "k8s.io", "images", "import", file)
	for _, name := range names { // the CRI hears of it a little later
		lab.Await(t, 20*time.Second, "image "+name, func() bool {
			answer, err := grpc.Call(t.Context(), criSocket, "/runtime.v1.ImageService/ListImages", nil)
			return err == nil && bytes.Contains(answer, []byte(name))
		})
	}
}

// archive makes an image of busybox, as docker save writes it.
func archive(t testing.TB, names []string) []byte {
	t.Helper()
	layer := layer(t)
	config, err := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux", "config": map[string]any{"Entrypoint": []string{"/bin/sleep", "100000"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}}})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": names, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	return pack(t, []entry{{name: "layer.tar", text: layer}, {name: "config.json", text: config}, {name: "manifest.json", text: manifest}})
}

// layer is a root file system of busybox alone.
func layer(t testing.TB) []byte {
	t.Helper()
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	entries := []entry{{name: "bin/busybox", text: busybox}}
	for _, applet := range []string{"sh", "sleep"} {
		entries = append(entries, entry{name: "bin/" + applet, link: "busybox"})
	}
	return pack(t, entries)
}

// An entry of an archive is a file that may be run, or a link.
type entry struct {
	name, link string
	text       []byte
}

func pack(t testing.TB, entries []entry) []byte {
	t.Helper()
	var all bytes.Buffer
	w := tar.NewWriter(&all)
	for _, e := range entries {
		h := tar.Header{Name: e.name, Mode: 0o755, Size: int64(len(e.text))}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}
