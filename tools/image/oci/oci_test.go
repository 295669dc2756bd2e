package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func weir() Image {
	return Weir("registry.local/weir:1.2.3", "1.2.3", "arm64", time.Unix(86400, 0), []byte("the weir"), []byte("the weird"), []byte("free"))
}

func write(t *testing.T, i Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, i); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// contents are the files of a tar, and its headers in order.
func contents(t *testing.T, archive []byte) (map[string][]byte, []tar.Header) {
	t.Helper()
	all := map[string][]byte{}
	var headers []tar.Header
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, *h)
		if h.Typeflag == tar.TypeReg {
			if all[h.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// blob is what a descriptor names, whose digest and size are right.
func blob(t *testing.T, files map[string][]byte, d descriptor) []byte {
	t.Helper()
	content, there := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
	if !there || len(content) != d.Size || d.Digest != fmt.Sprintf("sha256:%x", sha256.Sum256(content)) {
		t.Fatalf("%+v: there %t, %d bytes", d, there, len(content))
	}
	return content
}

func read[T any](t *testing.T, text []byte) (document T) {
	t.Helper()
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

// Each digest leads to its blob, down to the two binaries.
func TestWrite(t *testing.T) {
	files, _ := contents(t, write(t, weir()))
	if string(files["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("%s", files["oci-layout"])
	}
	index := read[struct{ Manifests []descriptor }](t, files["index.json"])
	if len(index.Manifests) != 1 {
		t.Fatalf("%+v", index)
	}
	top := index.Manifests[0]
	if top.MediaType != manifestType || *top.Platform != (platform{"arm64", "linux"}) || top.Annotations["io.containerd.image.name"] != "registry.local/weir:1.2.3" ||
		top.Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Errorf("%+v", top)
	}
	manifest := read[struct {
		Config descriptor
		Layers []descriptor
	}](t, blob(t, files, top))
	config := read[struct {
		Created, Architecture, OS string
		Config                    struct {
			User            string
			Entrypoint, Env []string
			Labels          map[string]string
		}
		Rootfs struct {
			Type    string
			DiffIDs []string `json:"diff_ids"`
		}
	}](t, blob(t, files, manifest.Config))
	if config.Created != "1970-01-02T00:00:00Z" || config.Architecture != "arm64" || config.OS != "linux" || config.Config.User != "0:0" ||
		!slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/weird"}) || config.Config.Labels["org.opencontainers.image.version"] != "1.2.3" {
		t.Errorf("%+v", config)
	}
	if len(manifest.Layers) != 1 || len(config.Rootfs.DiffIDs) != 1 || len(files) != 5 {
		t.Fatalf("%+v, %+v, %d files", manifest, config.Rootfs, len(files))
	}
	z, err := gzip.NewReader(bytes.NewReader(blob(t, files, manifest.Layers[0])))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(z)
	if err != nil || config.Rootfs.DiffIDs[0] != fmt.Sprintf("sha256:%x", sha256.Sum256(layer)) {
		t.Errorf("%v, %+v", err, config.Rootfs)
	}
	inside, headers := contents(t, layer)
	if string(inside["usr/bin/weir"]) != "the weir" || string(inside["usr/bin/weird"]) != "the weird" || len(inside) != 3 {
		t.Errorf("%q", inside)
	}
	var names []string
	for _, h := range headers {
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 86400 || strings.HasPrefix(h.Name, "usr/bin/w") != (h.Typeflag == tar.TypeReg && h.Mode == 0o755) {
			t.Errorf("%+v", h)
		}
	}
	if want := "usr/ usr/bin/ usr/bin/weir usr/bin/weird usr/share/ usr/share/doc/ usr/share/doc/weir/ usr/share/doc/weir/copyright"; strings.Join(names, " ") != want {
		t.Errorf("%q", names)
	}
}

// The same image has the same bytes, and another one has not.
func TestReproducible(t *testing.T) {
	first := write(t, weir())
	for range 20 {
		if !bytes.Equal(first, write(t, weir())) {
			t.Fatal("two writes differ")
		}
	}
	other := weir()
	other.Files["/usr/bin/weir"] = File{[]byte("the weiR"), 0o755}
	if bytes.Equal(first, write(t, other)) {
		t.Error("another binary gives the same image")
	}
}

func TestRefused(t *testing.T) {
	for _, name := range []string{"usr/bin/x", "/usr/../x", "/x/"} {
		i := weir()
		i.Files[name] = File{}
		if err := Write(io.Discard, i); err == nil || !strings.Contains(err.Error(), "absolute path") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
