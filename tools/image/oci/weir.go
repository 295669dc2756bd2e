package oci

import "time"

// Repository is what a node's containerd calls the image weir of a manifest: a name without a registry is Docker Hub's
// (github.com/distribution/reference, ParseDockerRef). An import keeps the name that the file has.
const Repository = "docker.io/library/weir"

// Weir is the image of weir: its two static binaries. Its root file system has nothing else but the
// license.
//
// It runs as root, and cannot do otherwise: the files of cgroups belong to root, and Kubernetes gives
// the capabilities that write them to root's processes alone.
func Weir(name, version, arch string, created time.Time, weir, weird, license []byte) Image {
	return Image{
		Name: name, Arch: arch, Created: created,
		Files: map[string]File{
			"/usr/bin/weir":                 {weir, 0o755},
			"/usr/bin/weird":                {weird, 0o755},
			"/usr/share/doc/weir/copyright": {license, 0o644},
		},
		Entrypoint: []string{"/usr/bin/weird"}, Cmd: []string{"help"}, Env: []string{"PATH=/usr/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "weir",
			"org.opencontainers.image.description": "Disk I/O limits that hold: weir and its daemon weird",
			"org.opencontainers.image.version":     version,
		},
	}
}
