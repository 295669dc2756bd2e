// Package kubernetes compiles programs of a node of Kubernetes for guests: those that Debian has not, or not in that
// version. The Go tool alone builds them: tools/kubernetes, tools/containerd and tools/kube require them in one version each.
package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/weir-io/weir/lab/internal/cache"
)

// What guests can be given.
const (
	Kubelet = "kubelet"
	// Cluster is all that a cluster of one node consists of.
	Cluster = "cluster"
	// Containerd is one that can require a plugin of NRI.
	Containerd = "containerd"
	// Containerd21 is the release that Debian forky has.
	Containerd21 = "containerd-2.1"
)

// A program is one that Go builds.
type program struct {
	name, module string
	mod          string // the module's file
	pkg          string
}

// sets are the programs of each thing that guests can be given. Those of a cluster are Kubernetes' own, its database,
// plugins for the network of pods, and helm.
var sets = map[string][]program{
	Kubelet: {kubelet},
	Cluster: {
		kubelet,
		{"kube-apiserver", "kubernetes", "go.mod", "k8s.io/kubernetes/cmd/kube-apiserver"},
		{"kube-controller-manager", "kubernetes", "go.mod", "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{"kube-scheduler", "kubernetes", "go.mod", "k8s.io/kubernetes/cmd/kube-scheduler"},
		{"kubectl", "kubernetes", "go.mod", "k8s.io/kubernetes/cmd/kubectl"},
		{"etcd", "kubernetes", "go.mod", "go.etcd.io/etcd/server/v3"},
		{"ptp", "kubernetes", "go.mod", "github.com/containernetworking/plugins/plugins/main/ptp"},
		{"host-local", "kubernetes", "go.mod", "github.com/containernetworking/plugins/plugins/ipam/host-local"},
		{"loopback", "kubernetes", "go.mod", "github.com/containernetworking/plugins/plugins/main/loopback"},
		{"helm", "kube", "go.mod", "helm.sh/helm/v4/cmd/helm"},
	},
	Containerd:   containerd("go.mod"),
	Containerd21: containerd("2.1.mod"),
}

var kubelet = program{"kubelet", "kubernetes", "go.mod", "k8s.io/kubernetes/cmd/kubelet"}

func containerd(mod string) (all []program) {
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		all = append(all, program{name, "containerd", mod, "github.com/containerd/containerd/v2/cmd/" + name})
	}
	return all
}

// Is reports whether guests are given it by this package.
func Is(name string) bool { return sets[name] != nil }

// Build returns the paths of the programs of what guests are given, compiled if need be. On two processors kubelet takes 8
// minutes and 2 GB of memory, the others of a cluster as much again, and containerd a minute. root is the folder with
// weir's go.mod.
func Build(ctx context.Context, c *cache.Cache, root, name string) (paths []string, err error) {
	for _, p := range sets[name] {
		path, err := p.build(ctx, c, root)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", p.name, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (p program) build(ctx context.Context, c *cache.Cache, root string) (string, error) {
	s, err := p.source(ctx, filepath.Join(root, "tools"))
	if err != nil {
		return "", err
	}
	dir, err := c.Get(ctx, p.name, s.recipe(p.pkg), func(ctx context.Context, dir string) error {
		args := append(s.args(), "-modfile="+p.mod, "-o", filepath.Join(dir, p.name), p.pkg)
		_, err := goTool(ctx, filepath.Join(root, "tools", p.module), args...)
		return err
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, p.name), nil
}

// A source is all that decides what is built.
type source struct {
	compiler string // go1.26.8
	mod, sum string // the module's files
	version  string // of Kubernetes: v1.37.2; empty: the module does not require it
}

// source reads that of a program. tools is the folder of the modules.
func (p program) source(ctx context.Context, tools string) (s source, err error) {
	module := filepath.Join(tools, p.module)
	if s.compiler, err = goTool(ctx, module, "env", "GOVERSION"); err != nil {
		return s, err
	}
	mod, err := os.ReadFile(filepath.Join(module, p.mod))
	if err != nil {
		return s, err
	}
	sum, err := os.ReadFile(filepath.Join(module, strings.TrimSuffix(p.mod, ".mod")+".sum"))
	if err != nil {
		return s, err
	}
	s.mod, s.sum = string(mod), string(sum)
	s.version = versionIn(s.mod)
	return s, nil
}

// versionIn finds the release of Kubernetes that a go.mod requires.
func versionIn(mod string) string {
	found := regexp.MustCompile(`(?m)^\s*(?:require )?k8s\.io/kubernetes (v\d+\.\d+\.\d+)$`).FindStringSubmatch(mod)
	if found == nil {
		return ""
	}
	return found[1]
}

func (s source) recipe(pkg string) []string {
	return append([]string{s.compiler, s.mod, s.sum, pkg}, s.args()...)
}

// args are go's but for the output and the package. Kubernetes' programs have their version from the linker
// (kubernetes, hack/lib/version.sh).
func (s source) args() []string {
	flags := []string{"-s", "-w"}
	if s.version != "" {
		parts := strings.Split(strings.TrimPrefix(s.version, "v"), ".")
		for _, v := range [][2]string{{"gitVersion", s.version}, {"gitMajor", parts[0]}, {"gitMinor", parts[1]}} {
			flags = append(flags, "-X", "k8s.io/component-base/version."+v[0]+"="+v[1])
		}
	}
	return []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + strings.Join(flags, " ")}
}

func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
