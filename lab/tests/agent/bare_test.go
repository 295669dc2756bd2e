package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	nri "github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

// A barePlugin is told by a container runtime what weird is told, and does nothing.
type barePlugin struct{}

func (barePlugin) Synchronize(context.Context, []*nri.PodSandbox, []*nri.Container) ([]*nri.ContainerUpdate, error) {
	fmt.Println("ready")
	return nil, nil
}
func (barePlugin) RunPodSandbox(context.Context, *nri.PodSandbox) error { return nil }
func (barePlugin) CreateContainer(context.Context, *nri.PodSandbox, *nri.Container) (*nri.ContainerAdjustment, []*nri.ContainerUpdate, error) {
	return nil, nil, nil
}
func (barePlugin) StartContainer(context.Context, *nri.PodSandbox, *nri.Container) error { return nil }
func (barePlugin) PostUpdateContainer(context.Context, *nri.PodSandbox, *nri.Container) error {
	return nil
}
func (barePlugin) RemovePodSandbox(context.Context, *nri.PodSandbox) error { return nil }
func (barePlugin) RemoveContainer(context.Context, *nri.PodSandbox, *nri.Container) error {
	return nil
}

// bare is the process of one.
func bare(args []string) error {
	conn, err := net.Dial("unix", args[0])
	if err != nil {
		return err
	}
	s, err := stub.New(barePlugin{}, stub.WithPluginName("bare"), stub.WithPluginIdx("10"), stub.WithConnection(conn))
	if err != nil {
		return err
	}
	return s.Run(context.Background())
}

// bare starts one at a runtime, and returns its process.
func (r *podRuntime) bare(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"=bare "+r.socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}
