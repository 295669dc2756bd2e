package full

import (
	"testing"

	"github.com/weir-io/weir/lab"
)

const hello = "hello from a container"

func TestDockerRuns(t *testing.T) {
	lab.Need(t, lab.Docker, lab.Systemd)
	start(t, "docker")
	t.Cleanup(func() { run(t, "systemctl", "stop", "docker.socket", "containerd") })
	if got := run(t, "docker", "info", "--format", "{{.Driver}} {{.CgroupDriver}}"); got != "overlay2 systemd" {
		t.Errorf("storage and cgroup driver: %q", got)
	}
	run(t, "docker", "import", busyboxTar(t), "busybox")
	if got := run(t, "docker", "run", "--rm", "--network", "none", "busybox", "/bin/echo", hello); got != hello {
		t.Errorf("it said %q", got)
	}
}

func TestPodmanRuns(t *testing.T) {
	e := lab.Need(t, lab.Podman, lab.Systemd)
	run(t, "podman", "import", "--quiet", busyboxTar(t), "busybox")
	t.Cleanup(func() { run(t, "podman", "rmi", "--force", "busybox") })
	args := []string{"run", "--rm", "--network", "none"}
	if e.Cgroups.Blkio != "" {
		// crun, podman's choice, refuses hybrid hosts and v1 hosts without cpuset.
		args = append([]string{"--runtime", "runc"}, args...)
	}
	if got := run(t, "podman", append(args, "busybox", "/bin/echo", hello)...); got != hello {
		t.Errorf("it said %q", got)
	}
}

func TestContainerdRuns(t *testing.T) {
	lab.Need(t, lab.Containerd, lab.Systemd)
	start(t, "containerd")
	if got := run(t, "ctr", "run", "--rm", "--rootfs", busyboxTree(t), "weir-lab", "/bin/echo", hello); got != hello {
		t.Errorf("it said %q", got)
	}
}
