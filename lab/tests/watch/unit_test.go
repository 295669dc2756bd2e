package watch_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/contrib"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/lab"
)

const (
	metricsUnit = "weird-metrics.service"
	unitsAt     = "/run/systemd/system"
	pageAt      = "http://127.0.0.1:9847"
)

// The page of weird traces in its hardened unit with the drop-in of contrib, and without it says in one
// sentence what is missing. With it the kernel's settings and log stay out of reach.
func TestPageTracesInItsUnit(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.BPF, lab.Systemd, lab.Root, lab.FS("ext4"))
	s := makeSubject(t, e, "weir-watch-unit")
	weir(t, "set", "cgroup:"+s.cgroup, "--quiet", "--hold", "kernel", "--write", "2MB/s", "--on", s.disk.Node)
	s.run(t, load.Job{Path: load.Direct, Block: block, Size: 16 << 20})
	lab.Await(t, 20*time.Second, "the load", func() bool { return readCounts(t, e, s.dir, s.disk.Number)["wbps"] > 1<<20 })
	t.Cleanup(func() {
		systemctl(t, "stop", metricsUnit)
		_ = os.RemoveAll(filepath.Join(unitsAt, metricsUnit+".d"))
		_ = os.Remove(filepath.Join(unitsAt, metricsUnit))
		systemctl(t, "daemon-reload")
	})
	startUnit(t, "")
	told := s.traceOnPage(t)
	if want := "the kernel shows no addresses of its functions"; !strings.Contains(told, want) || !strings.Contains(told, "page-trace.conf") {
		t.Errorf("without the drop-in the page does not say %q, and what to do, in\n%s", want, told)
	}
	startUnit(t, contrib.WeirdMetricsTrace)
	told = s.traceOnPage(t)
	cause := regexp.MustCompile(`<th scope="row">([^<]*)</th><td class="part">.*?<td class="figure">([^<]*) %</td>`).FindStringSubmatch(told)
	if cause == nil || cause[1] != trace.BlkThrottle.Title() || number(t, cause[2]) < causeLeast {
		t.Errorf("the largest part of the writer's time is %q in\n%s", cause, told)
	}
	pid := strings.TrimSpace(systemctl(t, "show", "--property=MainPID", "--value", metricsUnit))
	for _, path := range []string{"/proc/sys/kernel/sysrq", "/proc/sysrq-trigger", "/sys/kernel/mm/ksm/run", "/sys/module/printk/parameters/time", "/sys/block/" + filepath.Base(s.disk.Node) + "/queue/nr_requests", "/etc/fstab", filepath.Join(s.dir, "io.max"), "/dev/kmsg"} {
		if out, err := exec.Command("nsenter", "--mount", "--target", pid, "sh", "-c", `: >>"$0"`, path).CombinedOutput(); err == nil {
			t.Errorf("%s can be written in the unit: %s", path, out)
		}
	}
	if out, err := exec.Command("nsenter", "--mount", "--target", pid, "head", "-c1", "/proc/kmsg").CombinedOutput(); err == nil && len(out) > 0 {
		t.Errorf("the kernel's log can be read in the unit: %q", out)
	}
}

// startUnit starts the unit of contrib, with a drop-in or with --page-trace alone.
func startUnit(t *testing.T, dropIn string) {
	t.Helper()
	weird, err := exec.LookPath("weird")
	if err != nil {
		t.Fatal(err)
	}
	unit := strings.ReplaceAll(contrib.WeirdMetricsService, "/usr/local/bin/weird", weird)
	if dropIn == "" {
		unit = strings.ReplaceAll(unit, " --page ", " --page --page-trace ")
	}
	files := map[string]string{metricsUnit: unit}
	if dropIn != "" {
		files[metricsUnit+".d/page-trace.conf"] = strings.ReplaceAll(dropIn, "/usr/local/bin/weird", weird)
	}
	for name, text := range files {
		path := filepath.Join(unitsAt, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	systemctl(t, "daemon-reload")
	systemctl(t, "restart", metricsUnit)
	t.Cleanup(func() {
		if t.Failed() {
			status, _ := exec.Command("journalctl", "--no-pager", "-n30", "-u", metricsUnit).CombinedOutput()
			t.Logf("%s", status)
		}
	})
	lab.Await(t, 30*time.Second, "the page", func() bool {
		r, err := (&http.Client{Timeout: 5 * time.Second}).Get(pageAt + "/")
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
}

// traceOnPage follows the link that traces the group, and returns the page with the answer.
func (s *subject) traceOnPage(t *testing.T) string {
	t.Helper()
	before := pageOf(t, pageAt+"/group?"+url.Values{"cgroup": {s.cgroup}}.Encode())
	link := regexp.MustCompile(`href="(/group\?[^"]*trace=[^"#]*)#trace"`).FindStringSubmatch(before)
	if link == nil {
		return before
	}
	return pageOf(t, pageAt+strings.ReplaceAll(link[1], "&amp;", "&"))
}

func systemctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("systemctl", args...).CombinedOutput()
	if err != nil {
		t.Error(fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, out))
	}
	return string(out)
}
