// Package kubernetes compiles Kubernetes' programs for guests. Debian has none, and the Go tool alone
// builds them: tools/kubernetes is a module that requires them in one version each, and tools/kube has helm.
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
	// Cluster is all that a cluster of one node consists of: Programs.
	Cluster = "cluster"
)

// A program is one that Go builds.
type program struct{ name, module, pkg string }

// programs are those of a cluster: Kubernetes' own, its database, plugins for the network of
// pods, and helm.
var programs = []program{
	{Kubelet, "kubernetes", "k8s.io/kubernetes/cmd/kubelet"},
	{"kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"},
	{"etcd", "kubernetes", "go.etcd.io/etcd/server/v3"},
	{"ptp", "kubernetes", "github.com/containernetworking/plugins/plugins/main/ptp"},
	{"host-local", "kubernetes", "github.com/containernetworking/plugins/plugins/ipam/host-local"},
	{"loopback", "kubernetes", "github.com/containernetworking/plugins/plugins/main/loopback"},
	{"helm", "kube", "helm.sh/helm/v4/cmd/helm"},
}

// Is reports whether guests are given it by this package.
func Is(name string) bool { return name == Kubelet || name == Cluster }

// Build returns the paths of kubelet or of a cluster's programs, compiled if need be. kubelet takes 8 minutes on
// two processors and 2 GB of memory, the others as much again. root is the folder with weir's go.mod.
func Build(ctx context.Context, c *cache.Cache, root, name string) (paths []string, err error) {
	for _, p := range programs {
		if name != Cluster && name != p.name {
			continue
		}
		path, err := p.build(ctx, c, root)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", p.name, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (p program) build(ctx context.Context, c *cache.Cache, root string) (string, error) {
	module := filepath.Join(root, "tools", p.module)
	s, err := read(ctx, module)
	if err != nil {
		return "", err
	}
	dir, err := c.Get(ctx, p.name, s.recipe(p.pkg), func(ctx context.Context, dir string) error {
		args := append(s.args(), "-o", filepath.Join(dir, p.name), p.pkg)
		_, err := goTool(ctx, module, args...)
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

func read(ctx context.Context, module string) (s source, err error) {
	if s.compiler, err = goTool(ctx, module, "env", "GOVERSION"); err != nil {
		return s, err
	}
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return s, err
	}
	sum, err := os.ReadFile(filepath.Join(module, "go.sum"))
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
