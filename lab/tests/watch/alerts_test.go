package watch_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/contrib"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// unheld is the alert of contrib/prometheus that a limit which does not hold all I/O fires.
const unheld = "WeirLimitNotExpectedToHold"

// unheldLimit is the limit, in bytes a second.
const unheldLimit = 4e6

// A real Prometheus scrapes weird, with the alert rules of contrib. The alert for a limit that does
// not hold all I/O is silent while the pacer holds a buffered writer, fires when the limit lets the
// writer escape, and clears when it is held again. (On cgroup v1 the kernel alone does not hold
// buffered writes, and on v2 none to a file whose writeback is another group's.)
func TestAlerts(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Whole, lab.FS("ext4"), lab.Command("prometheus"))
	s := makeSubject(t, e, "weir-watch-alerts")
	const wants, size = 12e6, 64 << 20
	pacer := "auto"
	if e.Cgroups.IOInV2 { // this process's group has the file's pages, and its writeback
		if !e.Has("bpf") {
			pacer = "pacer" // without BPF weir has the pacer hold such writes only if it is told to
		}
		file := filepath.Join(s.disk.Dir, "f0")
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hold := func(by string) {
		t.Helper()
		weir(t, "set", "cgroup:"+s.cgroup, "--quiet", "--hold", by, "--write", fmt.Sprint(int(unheldLimit)), "--on", s.disk.Node)
	}
	m := serve(t)
	hold(pacer)
	s.run(t, load.Job{Path: load.Buffered, Block: 64 << 10, Size: size, Pace: wants})
	p := startPrometheus(t, strings.TrimSuffix(strings.TrimPrefix(m.url, "http://"), "/metrics"))
	lab.Await(t, 2*time.Minute, "Prometheus to have scraped what is held", func() bool {
		return p.value(t, fmt.Sprintf(`weir_io_limit_expected_held{cgroup=%q}`, s.cgroup)) == "1"
	})
	if state := p.alert(t, s.cgroup); state != "" {
		t.Errorf("the limit is held, and the alert is %s", state)
	}
	hold("kernel")
	began := time.Now()
	lab.Await(t, 3*time.Minute, "the alert to fire", func() bool { return p.alert(t, s.cgroup) == "firing" })
	t.Logf("it fires %s after the limit has lost the pacer", time.Since(began).Round(time.Second))
	lab.Await(t, time.Minute, "more at the disk than the limit, while the alert fires", func() bool { return s.reaches(t) > 1.5*unheldLimit })
	hold(pacer)
	began = time.Now()
	lab.Await(t, 3*time.Minute, "the alert to clear", func() bool { return p.alert(t, s.cgroup) == "" })
	t.Logf("it clears %s after the pacer holds again", time.Since(began).Round(time.Second))
	lab.Await(t, time.Minute, "no more at the disk than the limit, without the alert", func() bool { return s.reaches(t) < 1.1*unheldLimit })
}

// reaches is how much a second reaches the disk, which is kept from waiting in memory.
func (s *subject) reaches(t *testing.T) float64 {
	t.Helper()
	dir, err := os.Open(s.disk.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	began := time.Now()
	_, before := lab.DeviceBytes(t, s.disk.Number)
	for time.Since(began) < 5*time.Second {
		if err := unix.Syncfs(int(dir.Fd())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(250 * time.Millisecond)
	}
	_, after := lab.DeviceBytes(t, s.disk.Number)
	rate := float64(after-before) / time.Since(began).Seconds()
	t.Logf("%.2f MB/s reach the disk", rate/1e6)
	return rate
}

// A prometheus is one that runs until the test ends.
type prometheus struct{ url string }

// startPrometheus has Debian's Prometheus scrape weird each second, with the rules of contrib. What
// takes minutes in them takes seconds.
func startPrometheus(t *testing.T, target string) prometheus {
	t.Helper()
	dir := t.TempDir()
	quick := regexp.MustCompile(`for: \d+m`).ReplaceAllString(contrib.AlertRules, "for: 3s")
	quick = regexp.MustCompile(`\[\d+m\]`).ReplaceAllString(quick, "[10s]")
	if quick == contrib.AlertRules {
		t.Fatal("the rules have no times")
	}
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n" +
		"scrape_configs: [{job_name: weir, static_configs: [{targets: [\"" + target + "\"]}]}]\n"
	for name, text := range map[string]string{"rules.yml": quick, "prometheus.yml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("prometheus", "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", at)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(terminate)
		_ = cmd.Wait()
		if text, err := os.ReadFile(filepath.Join(dir, "log")); t.Failed() && err == nil {
			t.Logf("Prometheus says\n%s", text)
		}
	})
	p := prometheus{"http://" + at}
	lab.Await(t, time.Minute, "Prometheus", func() bool {
		r, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return p
}

// ask decodes an answer of its API.
func (p prometheus) ask(t *testing.T, path string, into any) {
	t.Helper()
	r, err := http.Get(p.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// value is that of the first series of an expression; empty: there is none.
func (p prometheus) value(t *testing.T, expr string) string {
	t.Helper()
	var doc struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	p.ask(t, "/api/v1/query?query="+url.QueryEscape(expr), &doc)
	if len(doc.Data.Result) == 0 {
		return ""
	}
	return fmt.Sprint(doc.Data.Result[0].Value[1])
}

// alert is the state of the alert for a group: "pending", "firing", or empty.
func (p prometheus) alert(t *testing.T, cgroup string) string {
	t.Helper()
	var doc struct {
		Data struct {
			Alerts []struct {
				Labels map[string]string
				State  string
			}
		}
	}
	p.ask(t, "/api/v1/alerts", &doc)
	for _, a := range doc.Data.Alerts {
		if a.Labels["alertname"] == unheld && a.Labels["cgroup"] == cgroup {
			return a.State
		}
	}
	return ""
}
