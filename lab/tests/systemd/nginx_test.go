package systemd_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/pagecache"
	"github.com/weir-io/weir/lab"
)

// nginxPort is one that nothing in a guest uses.
const nginxPort = 8471

// serve has Debian's nginx serve a folder. Its workers run as root: the folder is the
// test's own.
func serve(t *testing.T, dir string) {
	t.Helper()
	const file = "/etc/nginx/nginx.conf"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("user root;\npid /run/nginx.pid;\nevents {}\nhttp {\n sendfile on;\n access_log off;\n server { listen 127.0.0.1:%d; root %s; }\n}\n", nginxPort, dir)
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		output(t, "systemctl", "stop", "nginx.service")
		if err := os.WriteFile(file, before, 0o644); err != nil {
			t.Error(err)
		}
	})
	output(t, "systemctl", "restart", "nginx.service")
}

// download measures what comes of a file, per second, from its beginning on: after a
// second, for a time.
func download(t *testing.T, name string, over time.Duration) float64 {
	t.Helper()
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/%s", nginxPort, name))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("nginx answers %s", response.Status)
	}
	var began time.Time
	bytes, buffer := 0, make([]byte, 32<<10)
	for start := time.Now(); time.Since(start) < time.Second+over; {
		n, err := response.Body.Read(buffer)
		switch {
		case err == io.EOF:
			t.Fatal("the whole file came")
		case err != nil:
			t.Fatal(err)
		case time.Since(start) < time.Second:
		case began.IsZero():
			began = time.Now()
		default:
			bytes += n
		}
	}
	return float64(bytes) / time.Since(began).Seconds()
}

// evict drops a file from the page cache.
func evict(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := pagecache.Evict(f, 0, 0); err != nil {
		t.Fatal(err)
	}
}

// A limit on nginx's unit holds what nginx reads from the disk, at once, and after systemd
// has reloaded and restarted it.
func TestNginxIsHeld(t *testing.T) {
	lab.Need(t, lab.Systemd, lab.V2, lab.Guest, lab.Rates)
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	path := filepath.Join(disk.Dir, "big")
	if err := os.WriteFile(path, make([]byte, 100<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	serve(t, disk.Dir)
	output(t, "weir", "set", "unit:nginx", "--quiet", "--read", "1MB/s", "--on", disk.Dir)
	for _, after := range []string{"set", "daemon-reload and restart"} {
		if after != "set" {
			output(t, "systemctl", "daemon-reload")
			output(t, "systemctl", "restart", "nginx.service")
		}
		lab.Ratio(t, "download after "+after, 1e6, lab.Written, func() float64 {
			evict(t, path)
			return download(t, "big", 8*time.Second)
		})
	}
	output(t, "weir", "clear", "unit:nginx", "--quiet")
}
