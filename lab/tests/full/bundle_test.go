package full

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/busybox"
	"github.com/weir-io/weir/lab/environ"
)

// weir limits a bundle that a runtime runs without a daemon, by its group.
func TestBundle(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.Podman, lab.FS("ext4")) // with Podman both runtimes come
	longOnV1(t, e)
	t.Parallel()
	for _, runtime := range []string{"crun", "runc"} {
		if runtime == "crun" && e.Cgroups.Mode == environ.Hybrid {
			continue // it refuses such hosts
		}
		t.Run(runtime, func(t *testing.T) {
			if runtime == "crun" { // which is also Podman's
				lab.Need(t, lab.Whole, lab.Systemd)
			}
			t.Parallel()
			disk := lab.Disk(t, lab.FS("ext4"))
			name := "weir-" + runtime
			log := filepath.Join(t.TempDir(), "log") // the container keeps its end of a pipe
			run(t, "sh", "-c", fmt.Sprintf("%s run --detach --bundle %s %s >%s 2>&1 || { cat %[4]s >&2; false; }", runtime, bundle(t, "/"+name, disk.Dir, writing(e)), name, log))
			t.Cleanup(func() { run(t, runtime, "delete", "--force", name) })
			holds(t, e, disk, "cgroup:/"+name, filepath.Join(cmp.Or(e.Cgroups.Blkio, e.Cgroups.Unified), name), "")
		})
	}
}

// bundle makes a folder with a root file system of busybox and a configuration: a command
// with a directory at /data and weir at /weir, in a group.
func bundle(t *testing.T, group, data string, command []string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	tree := busybox.Tree(t)
	if err := os.Mkdir(filepath.Join(tree, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "runc", "spec", "--bundle", dir)
	file := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	weir, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	process := config["process"].(map[string]any)
	process["terminal"], process["args"] = false, command
	config["root"] = map[string]any{"path": tree}
	config["mounts"] = append(config["mounts"].([]any),
		map[string]any{"destination": "/data", "type": "bind", "source": data, "options": []string{"rbind", "rw"}},
		map[string]any{"destination": "/weir", "type": "bind", "source": weir, "options": []string{"rbind", "ro"}})
	config["linux"].(map[string]any)["cgroupsPath"] = group
	if text, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
