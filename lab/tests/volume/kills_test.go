package volume_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// Whenever weir is killed, the next weir finds a volume complete or not at all: no file is
// lost, no device or mount is left, and no volume is mounted without its limit.
func TestKills(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Loop, lab.FS("ext4"))
	on, name := room(t), unique(t)
	devices := loops(t)
	began := time.Now()
	weirSays(t, "volume", "create", name, "--size", "16MiB", "--on", on, "--write", "5MB/s")
	making := time.Since(began)
	began = time.Now()
	weirSays(t, "volume", "down", name)
	taking := time.Since(began)
	weirSays(t, "volume", "delete", name)
	for i := range lab.Times(t, "WEIR_KILLS", lab.More(5, 10)) {
		lab.Killed(t, making*3/2, "volume", "create", name, "--size", "16MiB", "--on", on, "--write", "5MB/s")
		if v, there := whole(t, on, name, devices); !there {
			continue
		} else if err := os.WriteFile(filepath.Join(v.Mount, "f"), []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		lab.Killed(t, taking*3/2, "volume", "down", name)
		lab.Killed(t, making*3/2, "volume", "up", name)
		v, there := whole(t, on, name, devices)
		if !there {
			t.Fatalf("round %d: the volume is gone", i)
		}
		weirSays(t, "volume", "up", name)
		if text, err := os.ReadFile(filepath.Join(v.Mount, "f")); string(text) != "kept" {
			t.Fatalf("round %d: the file has %q, %v", i, text, err)
		}
		weirSays(t, "volume", "down", name)
		lab.Killed(t, taking*3/2, "volume", "delete", name)
		if _, there := whole(t, on, name, devices); there {
			weirSays(t, "volume", "delete", name)
		}
		whole(t, on, name, devices)
	}
}

// whole checks what the next weir leaves of a volume after a kill, and reports whether there
// is one.
func whole(t *testing.T, on, name string, devices []string) (v volume, there bool) {
	t.Helper()
	for _, one := range volumes(t) {
		if one.Name == name {
			v, there = one, true
		}
	}
	_, err := os.Stat(filepath.Join(on, name+".img"))
	if (err == nil) != there {
		t.Fatalf("on record: %v; its file: %v", there, err)
	}
	mounted := strings.Contains(read(t, "/proc/self/mountinfo"), name)
	if mounted != (there && v.Up) {
		t.Fatalf("mounted: %v; on record: %+v", mounted, v)
	}
	now := loops(t)
	more := len(now) - len(devices)
	if there && v.Up {
		more--
		bounds := read(t, "/sys/class/bdi/"+v.Number.String()+"/strict_limit", "1")
		if lab.Here(t).Cgroups.Blkio != "" {
			rules := read(t, filepath.Join(lab.Here(t).Cgroups.Blkio, "blkio.throttle.write_bps_device"))
			if !strings.Contains(rules, v.Number.String()+" 5000000") {
				t.Fatalf("%s is up without its limit: %s", v.Device, rules)
			}
		}
		if strings.TrimSpace(bounds) != "1" {
			t.Fatalf("%s is up without its bound", v.Device)
		}
	}
	if more != 0 {
		t.Fatalf("there were %v before, and are %v; the volume: %+v", devices, now, v)
	}
	drafts, err := filepath.Glob("/var/lib/weir/volumes/.records/" + name + ".[mdn]*")
	if err != nil || len(drafts) > 0 {
		t.Fatalf("left: %v, %v", drafts, err)
	}
	return v, there
}

// loops lists the loop devices that are in use, or are weir's.
func loops(t *testing.T) []string {
	t.Helper()
	used, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	high, err := filepath.Glob("/sys/block/loop[2-9][0-9][0-9]")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, path := range append(used, high...) {
		names[strings.Split(path, "/")[3]] = true
	}
	var all []string
	for name := range names {
		all = append(all, name)
	}
	return all
}

// read returns a file's text; otherwise stands for one that the kernel does not have.
func read(t *testing.T, path string, otherwise ...string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && len(otherwise) > 0 && os.IsNotExist(err) {
		return otherwise[0]
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
