package full

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// A container gets a volume, which comes back at boot and is held: by its own
// limit on v1, by the container's on v2.
func (d containerTest) ownDisk(t *testing.T) {
	rate := 10000000
	mustWeir(t, "volume", "create", "web", "--size", "64MiB", "--on", d.disk.Dir, "--write", fmt.Sprint(rate))
	t.Cleanup(func() { // if it fails half way
		_, _, _ = weir(t, "volume", "up", "--at-boot=false")
		_, _, _ = weir(t, "volume", "down", "web")
		_, _, _ = weir(t, "volume", "delete", "web")
	})
	const dir = "/var/lib/weir/volumes/web"
	mustWeir(t, "volume", "up", "--at-boot")
	mustWeir(t, "volume", "down", "web")
	if enabled := run(t, "systemctl", "is-enabled", "weir-volumes"); enabled != "enabled" {
		t.Errorf("the unit is %s", enabled)
	}
	run(t, "systemctl", "start", "weir-volumes")

	write := strings.ReplaceAll(endless, "/data/f", "/vol/f")
	write = strings.ReplaceAll(write, "count=16000 conv=notrunc", "count=800 conv=notrunc")
	d.container(t, "disk", []string{"--volume", dir + ":/vol"}, "/bin/sh", "-c", write)
	mustWeir(t, "volume", "set", "web", "--for", d.engine+":disk")
	device := deviceOf(t, dir)
	time.Sleep(2 * time.Second)
	lab.Ratio(t, "the volume", float64(rate), lab.Written, func() float64 {
		began := time.Now()
		_, before := lab.DeviceBytes(t, device)
		time.Sleep(6 * time.Second)
		_, after := lab.DeviceBytes(t, device)
		return float64(after-before) / time.Since(began).Seconds()
	})
	if _, said, status := weir(t, "volume", "down", "web"); status != 1 || !strings.Contains(said, "mounted at /vol") {
		t.Errorf("a volume that a container has comes down: %d: %s", status, said)
	}
	run(t, d.engine, "rm", "--force", "disk")
	mustWeir(t, "volume", "up", "--at-boot=false")
	if _, err := os.Stat("/etc/systemd/system/weir-volumes.service"); err == nil {
		t.Error("the unit is left")
	}
	lab.Await(t, 20*time.Second, "the volume to come down", func() bool {
		_, _, status := weir(t, "volume", "down", "web")
		return status == 0
	})
	mustWeir(t, "volume", "delete", "web")
}

func deviceOf(t *testing.T, dir string) blkdev.Number {
	t.Helper()
	m, mounted, err := blkdev.New("/").MountedOn(dir)
	if err != nil || !mounted {
		t.Fatalf("%s is not mounted: %v", dir, err)
	}
	return m.Number
}
