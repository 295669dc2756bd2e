package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/second"
)

// containerID is of the one container of the copies of hosts.
const containerID = "3f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"

// containerFiles are those of a container that Docker's cgroupfs driver has made.
func containerFiles(machine string) map[string]string {
	const mounts = "440 430 254:16 /volumes/db/_data /db rw,relatime - xfs /dev/vdb rw,inode64\n"
	group := "/docker/" + containerID
	files := map[string]string{"proc/4900/mountinfo": mounts}
	if machine == "v2" {
		dir := "sys/fs/cgroup" + group
		maps.Copy(files, map[string]string{"proc/4900/cgroup": "0::" + group + "\n", dir + "/cgroup.procs": "4900\n", dir + "/cgroup.controllers": "io\n",
			dir + "/cgroup.type": "domain\n", dir + "/cgroup.subtree_control": "", dir + "/io.max": "", dir + "/io.stat": ""})
		return files
	}
	dir := "sys/fs/cgroup/blkio" + group
	maps.Copy(files, map[string]string{"proc/4900/cgroup": "2:memory:" + group + "\n1:blkio:" + group + "\n", dir + "/cgroup.procs": "4900\n"})
	for _, rate := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
		files[dir+"/blkio.throttle."+rate+"_device"] = ""
	}
	return files
}

// copyOf is a copy of a machine on which a container runs. A stand-in for the kernel takes what is
// written there, and one for Docker answers.
func copyOf(t *testing.T, machine string) *host.Host {
	t.Helper()
	h := hosttest.Open(t, machine, containerFiles(machine), host.Options{})
	hosttest.Rehearse(t, h)
	socket := sockettest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"Id":"`+containerID+`","State":{"Status":"running","Pid":4900},"HostConfig":{}}`)
	})
	dir := filepath.Join(h.Root, "var/run")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(socket, filepath.Join(dir, "docker.sock")); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestASecondFrontEnd has another front end do what the command line does, one thing after the
// other, each on a copy of a host of its own. The documents are the same, and so are the errors'
// exit codes.
func TestASecondFrontEnd(t *testing.T) {
	lab.Unit(t)
	write := limit.Limit{WBPS: limit.PerSecond(5e6)}
	onData := []limit.Asked{{On: "/data", Limit: write}}
	anywhere := []limit.Asked{{Limit: write}}
	for _, machine := range []string{"v1", "v2"} {
		one, other := copyOf(t, machine), copyOf(t, machine)
		for _, c := range []struct {
			args string
			r    second.Request
			exit int // -1: it tells the verdict
		}{
			{"show --for 0", second.Request{Do: "show"}, 0},
			{"show --for 0 cgroup:/batch/night", second.Request{Do: "show", Of: "cgroup:/batch/night"}, 0},
			{"why", second.Request{Do: "why"}, -1},
			{"why /data", second.Request{Do: "why", Of: "/data"}, -1},
			{"why vdb", second.Request{Do: "why", Of: "vdb"}, -1},
			{"why pid:4711", second.Request{Do: "why", Of: "pid:4711"}, -1},
			{"why cgroup:/batch/night", second.Request{Do: "why", Of: "cgroup:/batch/night"}, -1},
			{"why cgroup:/", second.Request{Do: "why", Of: "cgroup:/"}, -1},
			{"why cgroup:/batch --write 5MB/s --on /data --hold kernel", second.Request{Do: "why", Of: "cgroup:/batch", Asked: onData, Hold: limit.HoldKernel}, -1},
			{"set --dry-run cgroup:/batch --write 5MB/s --on /data", second.Request{Do: "set", Of: "cgroup:/batch", Asked: onData, Dry: true}, 0},
			{"set --dry-run docker:web --write 5MB/s --persist", second.Request{Do: "set", Of: "docker:web", Asked: anywhere, Persist: true, Dry: true}, 0},
			{"clear --dry-run cgroup:/batch --on /data", second.Request{Do: "clear", Of: "cgroup:/batch", Asked: []limit.Asked{{On: "/data"}}, Dry: true}, 0},
			{"restore --dry-run", second.Request{Do: "restore", Dry: true}, 0},
			{"set cgroup:/batch --write 5MB/s --on /data", second.Request{Do: "set", Of: "cgroup:/batch", Asked: onData}, 0},
			{"show --for 0 cgroup:/batch", second.Request{Do: "show", Of: "cgroup:/batch"}, 0},
			{"set pid:4711 --write 5MB/s --whole-cgroup --hold kernel", second.Request{Do: "set", Of: "pid:4711", Asked: anywhere, Whole: true, Hold: limit.HoldKernel}, 0},
			{"set cgroup:/none --write 5MB/s", second.Request{Do: "set", Of: "cgroup:/none", Asked: anywhere}, 1},
			{"set cgroup:/batch --write 5MB/s --persist", second.Request{Do: "set", Of: "cgroup:/batch", Asked: anywhere, Persist: true}, 2},
			{"set docker:web --write 5MB/s --persist", second.Request{Do: "set", Of: "docker:web", Asked: anywhere, Persist: true}, 0},
			{"show --for 0 docker:web", second.Request{Do: "show", Of: "docker:web"}, 0},
			{"why docker:web", second.Request{Do: "why", Of: "docker:web"}, -1},
			{"restore --dry-run", second.Request{Do: "restore", Dry: true}, 0},
			{"restore", second.Request{Do: "restore"}, 0},
			{"clear docker:web", second.Request{Do: "clear", Of: "docker:web"}, 0},
			{"restore docker:web", second.Request{Do: "restore", Of: "docker:web"}, 1},
			{"clear cgroup:/batch --on /data", second.Request{Do: "clear", Of: "cgroup:/batch", Asked: []limit.Asked{{On: "/data"}}}, 0},
			{"clear cgroup:/batch", second.Request{Do: "clear", Of: "cgroup:/batch"}, 0},
			{"show --for 0", second.Request{Do: "show"}, 0},
			{"quota show /data", second.Request{Do: "quota show", Of: "/data"}, 3},
		} {
			got, exit := printed(t, one, strings.Fields(c.args))
			document, err := second.Do(t.Context(), other, c.r)
			if its := cli.ExitCode(err); c.exit >= 0 && (exit != c.exit || its != c.exit) {
				t.Errorf("%s on %s: exit code %d, and by the core %d (%v), want %d", c.args, machine, exit, its, err, c.exit)
			}
			if err != nil && (document == nil || got == nil) {
				continue
			}
			text, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			if want := decoded(t, other, text); !reflect.DeepEqual(got, want) {
				t.Errorf("%s on %s:\n%v\nand by the core\n%v", c.args, machine, got, want)
			}
		}
	}
}

// printed is the document that a command line prints for a host, without what it says beside it,
// and its exit code.
func printed(t *testing.T, h *host.Host, args []string) (document map[string]any, exit int) {
	t.Helper()
	var data, messages bytes.Buffer
	a := &app{out: cli.Out{Data: &data, Messages: &messages}, host: h}
	args = append(args, "--json", "--root", h.Root)
	command := rootFor(a, args)
	command.SetArgs(args)
	exit = cli.ExitCode(command.ExecuteContext(context.Background()))
	if err := a.out.Flush(); err != nil {
		t.Fatal(err)
	}
	if data.Len() == 0 {
		return nil, exit
	}
	document = decoded(t, h, data.Bytes())
	delete(document, "messages")
	return document, exit
}

// decoded reads a document, in which the root of its host is called ROOT.
func decoded(t *testing.T, h *host.Host, text []byte) (document map[string]any) {
	t.Helper()
	if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(h.Root), []byte("ROOT")), &document); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return document
}
