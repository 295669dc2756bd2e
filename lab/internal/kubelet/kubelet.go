// Package kubelet compiles Kubernetes' kubelet for guests. Debian has none, and the Go tool alone
// builds it: tools/kubelet is a module that requires it in one version.
package kubelet

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

// Name is the program's.
const Name = "kubelet"

// pkg is the package of the command.
const pkg = "k8s.io/kubernetes/cmd/kubelet"

// Build returns the path of the program, compiled if need be. That takes 8 minutes on two processors
// and 2 GB of memory. root is the folder with weir's go.mod.
func Build(ctx context.Context, c *cache.Cache, root string) (string, error) {
	module := filepath.Join(root, "tools", "kubelet")
	s, err := read(ctx, module)
	if err != nil {
		return "", fmt.Errorf("build kubelet: %w", err)
	}
	dir, err := c.Get(ctx, Name, s.recipe(), func(ctx context.Context, dir string) error {
		args := append(s.args(), "-o", filepath.Join(dir, Name), pkg)
		_, err := goTool(ctx, module, args...)
		return err
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, Name), nil
}

// A source is all that decides what is built.
type source struct {
	compiler string // go1.26.8
	mod, sum string // the module's files
	version  string // v1.37.2
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
	s.version, err = versionIn(s.mod)
	return s, err
}

// versionIn finds the version that a go.mod requires.
func versionIn(mod string) (string, error) {
	found := regexp.MustCompile(`(?m)^require k8s\.io/kubernetes (v\d+\.\d+\.\d+)$`).FindStringSubmatch(mod)
	if found == nil {
		return "", fmt.Errorf("go.mod requires no release of k8s.io/kubernetes")
	}
	return found[1], nil
}

func (s source) recipe() []string {
	return append([]string{s.compiler, s.mod, s.sum, pkg}, s.args()...)
}

// args are go's but for the output and the package. kubelet has its version from the linker
// (kubernetes, hack/lib/version.sh).
func (s source) args() []string {
	parts := strings.Split(strings.TrimPrefix(s.version, "v"), ".")
	flags := []string{"-s", "-w"}
	for _, v := range [][2]string{{"gitVersion", s.version}, {"gitMajor", parts[0]}, {"gitMinor", parts[1]}} {
		flags = append(flags, "-X", "k8s.io/component-base/version."+v[0]+"="+v[1])
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
