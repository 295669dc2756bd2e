package engine

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/targets"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"web": true, "3f2a": true, "a.b-c_d": true, "A": true, strings.Repeat("x", 255): true,
		"": false, ".": false, "..": false, "../x": false, "a/b": false, "-x": false, "_x": false, "a b": false, "a\nb": false,
		"a%2fb": false, "a?b": false, "köln": false, "web\x00": false, strings.Repeat("x", 300): false,
	} {
		if isName(name) != want {
			t.Errorf("isName(%q) = %t", name, !want)
		}
	}
}

func TestSocket(t *testing.T) {
	for host, want := range map[string]string{
		"": "/r/var/run/docker.sock", "unix:///run/x.sock": "/run/x.sock", "unix://x.sock": "", "unix://": "", "/run/x.sock": "",
		"tcp://10.0.0.1:2375": "", "ssh://me@there": "", "npipe:////./pipe/docker": "",
	} {
		if got, err := (Kind{Maker: docker, Root: "/r", Host: host}).socket("web"); got != want || (err == nil) != (want != "") {
			t.Errorf("DOCKER_HOST=%q: %q, %v; want %q", host, got, err, want)
		}
	}
}

// A bare name is asked for only where an answer can be had, and is of use.
func TestMayKnow(t *testing.T) {
	e := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") })
	k := Kind{Maker: docker, Host: "unix://" + e.socket}
	for name, want := range map[string]bool{"web": true, "3f2a": true, "4711": false, "/batch": false, "a b": false, "": false} {
		if k.MayKnow(name) != want {
			t.Errorf("MayKnow(%q) = %t", name, !want)
		}
	}
	for _, host := range []string{"unix:///nowhere/docker.sock", "tcp://x"} {
		if (Kind{Maker: docker, Host: host}).MayKnow("web") {
			t.Errorf("DOCKER_HOST=%s: MayKnow = true", host)
		}
	}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
		as   func(error) bool
	}{
		{unix.ENOENT, "docker:web: there is no Docker at /s; start Docker (", fault.IsUnsupported},
		{unix.ECONNREFUSED, "docker:web: Docker is not running: nothing answers at /s; start Docker (", fault.IsUnsupported},
		{unix.EACCES, "docker:web: ask Docker at /s: permission denied (run weir as root)", nil},
		{os.ErrDeadlineExceeded, "docker:web: ask Docker at /s: no answer in 10s; check whether it is running: docker ps", nil},
		{errors.New("odd"), "docker:web: ask Docker at /s: odd", nil},
		{&refusal{404, "No such container: web"}, "docker:web: no such container; ", func(err error) bool { var n *targets.NotFound; return errors.As(err, &n) }},
		{&refusal{400, "Multiple IDs found with provided prefix: web"}, "docker:web: the ids of several containers begin like this; ", nil},
		{&refusal{500, "a\x1b[2Jb"}, `docker:web: Docker at /s answers 500: "a\x1b[2Jb"`, nil},
	} {
		err := docker.explain("docker:web", "/s", c.err)
		if !strings.HasPrefix(err.Error(), c.want) || c.as != nil && !c.as(err) {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}

// host makes one with v2 and one process, 4711, in a group.
func host(t *testing.T, group string) Kind {
	t.Helper()
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{"proc/4711/cgroup": "0::" + group + "\n"})
	return Kind{Maker: docker, FS: h.FS, Hierarchy: h.IO, Devices: blkdev.New(h.Root), SystemdRuns: true, Root: h.Root}
}

// Podman is root's, or the user's own, and says so of itself.
func TestPodman(t *testing.T) {
	root, user, homeless := podman(0, "/run/user/0"), podman(1000, "/run/user/1000"), podman(1000, "")
	if root.socket != "/run/podman/podman.sock" || user.socket != "/run/user/1000/podman/podman.sock" || homeless != user {
		t.Errorf("sockets %s, %s, %s", root.socket, user.socket, homeless.socket)
	}
	for err, want := range map[error]string{
		unix.ENOENT: "podman:web: there is no Podman at /s; start Podman (systemctl --user start podman.socket), or name its socket with CONTAINER_HOST=",
		&refusal{404, "no container with name or ID \"web\" found: no such container"}:                 "podman:web: no such container; podman ps lists those that run",
		&refusal{500, "more than one result for container name or ID \"a\": container already exists"}: "podman:web: the ids of several containers begin like this; write more of the id (podman ps --no-trunc)",
	} {
		if got := user.explain("podman:web", "/s", err).Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
	for group, want := range map[string]string{
		"/machine.slice/libpod-" + id + ".scope/container":                                           "/machine.slice/libpod-" + id + ".scope/container",
		"/machine.slice/libpod-" + id + ".scope/container/init.scope":                                "/machine.slice/libpod-" + id + ".scope/container",
		"/machine.slice/libpod-" + id + ".scope":                                                     "/machine.slice/libpod-" + id + ".scope",
		"/libpod_parent/libpod-" + id:                                                                "/libpod_parent/libpod-" + id,
		"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope/container": "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope/container",
		"/machine.slice/libpod-conmon-" + id + ".scope":                                              "",
		"/system.slice/own.service/" + id:                                                            "/system.slice/own.service/" + id, "/system.slice/" + id + "x": "",
	} {
		k := host(t, group)
		k.Maker = root
		c := container{ID: id}
		c.State.Pid = 4711
		if got, err := k.groupOf("podman:web", c); (err == nil) != (want != "") || err == nil && got.Path() != want {
			t.Errorf("%s: %s, %v", group, got.Path(), err)
		}
	}
}

// The group is the container's own, wherever its first process has gone below it, and no
// other one's.
func TestGroup(t *testing.T) {
	scope := "/system.slice/docker-" + id + ".scope"
	for group, want := range map[string]string{
		"/docker/" + id: "/docker/" + id, "/my/parent/" + id: "/my/parent/" + id,
		scope: scope, scope + "/init.scope": scope, "/docker/" + strings.Repeat("0", 64) + "/docker/" + id: "/docker/" + strings.Repeat("0", 64) + "/docker/" + id,
		"/system.slice/cron.service": "", "/": "", "/docker/" + id + "x": "", "/docker": "",
	} {
		k := host(t, group)
		c := container{ID: id}
		c.State.Pid = 4711
		got, err := k.groupOf("docker:web", c)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "which is not the container's") {
				t.Errorf("%s: %v, %v", group, got.Path(), err)
			}
			continue
		}
		if err != nil || got.Path() != want {
			t.Errorf("%s: %s, %v", group, got.Path(), err)
		}
	}
	c := container{ID: id}
	c.State.Pid = 4712
	if _, err := host(t, "/").groupOf("docker:web", c); err == nil || !strings.Contains(err.Error(), "is not on this host") {
		t.Errorf("of no process: %v", err)
	}
}

func TestRecordJoinsRatesOfADevice(t *testing.T) {
	c := container{ID: id}
	c.HostConfig.BlkioDeviceReadBps = []throttle{{"/dev/b", 1}, {"/dev/a", 2}}
	c.HostConfig.BlkioDeviceWriteIOps = []throttle{{"/dev/a", 3}, {"/dev/c", 0}}
	r := c.record(t.Context(), blkdev.New(t.TempDir()), docker)
	if len(r.Limits) != 2 || r.Limits[0].Path != "/dev/a" || r.Limits[0].Limit != (limit.Limit{RBPS: limit.PerSecond(2), WIOPS: limit.PerSecond(3)}) ||
		r.Limits[1].Limit != (limit.Limit{RBPS: limit.PerSecond(1)}) || r.Limits[0].Err == nil {
		t.Errorf("%+v", r)
	}
}
