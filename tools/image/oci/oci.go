// Package oci writes a container image as one file: a tar of an OCI image layout (OCI image
// specification 1.1, image-layout.md), which containerd, Podman and skopeo import. It needs no
// registry and no daemon. The same files give the same bytes.
package oci

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// An Image has one layer.
type Image struct {
	// Name is what an import calls it, with its tag: docker.io/library/weir:0.1.0.
	Name       string
	Arch       string // as in GOARCH
	Created    time.Time
	Files      map[string]File // by their absolute paths
	Entrypoint []string
	Cmd        []string
	Env        []string
	Labels     map[string]string
}

// A File is a regular file of root's. Directories above it are made, with mode 0755.
type File struct {
	Content []byte
	Mode    int64
}

// Media types of the specification.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// A descriptor names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *platform         `json:"platform,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// Write writes the tar.
func Write(w io.Writer, i Image) error {
	layer, err := i.layer()
	if err != nil {
		return err
	}
	blobs := map[string][]byte{}
	add := func(mediaType string, content []byte) descriptor {
		digest := digestOf(content)
		blobs[digest] = content
		return descriptor{MediaType: mediaType, Digest: digest, Size: len(content)}
	}
	addJSON := func(mediaType string, document any) descriptor {
		var content []byte
		if content, err = json.Marshal(document); err != nil {
			return descriptor{}
		}
		return add(mediaType, content)
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is one
	if _, err := z.Write(layer); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	config := addJSON(configType, map[string]any{
		"created": i.Created.UTC().Format(time.RFC3339), "architecture": i.Arch, "os": "linux",
		"config":  map[string]any{"User": "0:0", "Entrypoint": i.Entrypoint, "Cmd": i.Cmd, "Env": i.Env, "Labels": i.Labels, "WorkingDir": "/"},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{digestOf(layer)}},
		"history": []any{map[string]any{"created": i.Created.UTC().Format(time.RFC3339), "created_by": "weir's tools/image"}},
	})
	manifest := addJSON(manifestType, map[string]any{"schemaVersion": 2, "mediaType": manifestType, "config": config,
		"layers": []descriptor{add(layerType, packed.Bytes())}, "annotations": i.Labels})
	_, tag, _ := strings.Cut(path.Base(i.Name), ":")
	manifest.Platform = &platform{i.Arch, "linux"}
	// containerd takes the whole name from its own annotation, others the tag from the specification's.
	manifest.Annotations = map[string]string{"io.containerd.image.name": i.Name, "org.opencontainers.image.ref.name": cmp.Or(tag, "latest")}
	index, indexErr := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []descriptor{manifest}})
	if err := errors.Join(err, indexErr); err != nil {
		return err
	}
	files := map[string]File{"/oci-layout": {[]byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644}, "/index.json": {index, 0o644}}
	for digest, content := range blobs {
		files["/blobs/"+strings.Replace(digest, ":", "/", 1)] = File{content, 0o644}
	}
	return archive(w, files, i.Created)
}

func (i Image) layer() ([]byte, error) {
	for name := range i.Files {
		if !path.IsAbs(name) || path.Clean(name) != name {
			return nil, fmt.Errorf("file %q of the image: it needs an absolute path", name)
		}
	}
	var layer bytes.Buffer
	err := archive(&layer, i.Files, i.Created)
	return layer.Bytes(), err
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// archive writes files, in the order of their names, each after the directories above it.
func archive(w io.Writer, files map[string]File, at time.Time) error {
	out := tar.NewWriter(w)
	made := map[string]bool{"/": true}
	header := func(h tar.Header) error {
		h.ModTime, h.Format = at.UTC().Truncate(time.Second), tar.FormatUSTAR
		return out.WriteHeader(&h)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var above []string
		for dir := path.Dir(name); !made[dir]; dir = path.Dir(dir) {
			above, made[dir] = append(above, dir), true
		}
		slices.Reverse(above)
		for _, dir := range above {
			if err := header(tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o755}); err != nil {
				return err
			}
		}
		f := files[name]
		if err := header(tar.Header{Typeflag: tar.TypeReg, Name: name[1:], Mode: f.Mode, Size: int64(len(f.Content))}); err != nil {
			return err
		}
		if _, err := out.Write(f.Content); err != nil {
			return err
		}
	}
	return out.Close()
}
