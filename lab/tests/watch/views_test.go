package watch_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// weir runs weir and returns its standard output.
func weir(t testing.TB, args ...string) []byte {
	t.Helper()
	var said, wrong bytes.Buffer
	cmd := exec.Command("weir", args...)
	cmd.Stdout, cmd.Stderr = &said, &wrong
	if err := cmd.Run(); err != nil {
		t.Errorf("weir %s: %v\n%s", strings.Join(args, " "), err, wrong.Bytes())
	}
	return said.Bytes()
}

// A view is what one view says of a group on a device.
type view struct {
	totals, rates, limits, percent map[string]float64
	expected, foreign              any // as in weir.show
	paced                          float64
	paused                         *api.TopPaced // of weir top; nil: nothing is paced
}

// topOf asks weir top for a group on a device.
func topOf(t testing.TB, cgroup string, dev blkdev.Number, every time.Duration, flags ...string) (doc api.Top, v view) {
	t.Helper()
	text := weir(t, append([]string{"top", "--once", "--json", "--every", every.String()}, flags...)...)
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Errorf("weir top: %v in %s", err, text)
		return doc, v
	}
	if doc.Unread > 0 {
		t.Errorf("weir top could not read %d", doc.Unread)
	}
	for _, g := range doc.Groups {
		for _, d := range g.Devices {
			if g.Cgroup != cgroup || d.Number != dev {
				continue
			}
			v = view{limits: numbers(t, d.Limit), percent: numbers(t, d.Percent), expected: d.Expected, foreign: d.Foreign}
			if d.Rates != nil {
				v.rates = numbers(t, d.Rates)
			}
			if s := d.Total; s != nil {
				v.totals = map[string]float64{"rbps": float64(s.ReadBytes), "wbps": float64(s.WrittenBytes), "riops": float64(s.Reads), "wiops": float64(s.Writes)}
			}
			if g.Paced != nil {
				v.paced, v.paused = float64(g.Paced.WBPS), g.Paced
			}
			return doc, v
		}
	}
	t.Errorf("weir top does not show %s on %s: %s", cgroup, dev, text)
	return doc, v
}

// showOf asks weir show.
func showOf(t testing.TB, cgroup string, dev blkdev.Number, window time.Duration) (v view) {
	t.Helper()
	text := weir(t, "show", "--json", "--for", window.String(), "cgroup:"+cgroup)
	var doc api.Show
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Errorf("weir show: %v in %s", err, text)
		return v
	}
	for _, g := range doc.Groups {
		for _, d := range g.Devices {
			if d.Number != dev {
				continue
			}
			v = view{limits: numbers(t, d.Limit), expected: d.Expected, foreign: d.Foreign, paced: float64(g.Paced)}
			if d.Rates != nil {
				v.rates = numbers(t, d.Rates)
			}
			return v
		}
	}
	t.Errorf("weir show does not show %s on %s: %s", cgroup, dev, text)
	return v
}

// historyOf asks weir history for the last minute of a group.
func historyOf(t testing.TB, dir, cgroup string) (doc api.History) {
	t.Helper()
	text := weir(t, "history", "cgroup:"+cgroup, "--history", dir, "--since", "1m", "--json")
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Errorf("weir history: %v in %s", err, text)
	}
	return doc
}

// numbers are the fields of a document that have some.
func numbers(t testing.TB, of any) map[string]float64 {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for name, value := range all {
		if n, is := value.(float64); is {
			found[name] = n
		}
	}
	return found
}

// A scraper asks a weird that serves metrics.
type scraper struct {
	url string
	pid int
}

// serve starts weird, until the test ends.
func serve(t *testing.T, flags ...string) scraper {
	t.Helper()
	cmd := exec.Command("weird", append([]string{"--listen", "127.0.0.1:0"}, flags...)...)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(terminate)
		if err := cmd.Wait(); err != nil {
			t.Errorf("weird: %v", err)
		}
	})
	lines := bufio.NewReader(said)
	var found []string
	for found == nil {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("weird says %q: %v", line, err)
		}
		found = regexp.MustCompile(`serving metrics at (\S+), path (\S+) `).FindStringSubmatch(line)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	return scraper{"http://" + found[1] + found[2], cmd.Process.Pid}
}

// metrics are values by name and labels, as the page has them.
type metrics map[string]float64

var metricLine = regexp.MustCompile(`^(weir_[a-z_]+(?:\{.*\})?) (\S+)$`)

// page asks for the text.
func (s scraper) page(t testing.TB) []byte {
	t.Helper()
	client := http.Client{Timeout: lab.Patience(t, 30*time.Second)}
	r, err := client.Get(s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %v: %s", s.url, r.Status, err, text)
	}
	return text
}

// scrape asks for the page and reads it.
func (s scraper) scrape(t testing.TB) metrics {
	t.Helper()
	m := metrics{}
	for line := range strings.Lines(string(s.page(t))) {
		if found := metricLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); found != nil {
			value, err := strconv.ParseFloat(found[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			m[found[1]] = value
		}
	}
	return m
}

// of makes a view of a page.
func (m metrics) of(cgroup, device string) view {
	labels := fmt.Sprintf(`{cgroup=%q,device=%q}`, cgroup, device)
	pick := func(names map[string]string) map[string]float64 {
		found := map[string]float64{}
		for name, metric := range names {
			if v, is := m[metric+labels]; is {
				found[name] = v
			}
		}
		return found
	}
	return view{
		totals: pick(map[string]string{"rbps": "weir_io_read_bytes_total", "wbps": "weir_io_written_bytes_total", "riops": "weir_io_reads_total", "wiops": "weir_io_writes_total"}),
		limits: pick(map[string]string{"rbps": "weir_io_limit_read_bytes_per_second", "wbps": "weir_io_limit_written_bytes_per_second",
			"riops": "weir_io_limit_reads_per_second", "wiops": "weir_io_limit_writes_per_second"}),
		paced: m[fmt.Sprintf(`weir_group_paced_bytes_per_second{cgroup=%q}`, cgroup)],
	}
}

// held is what a page says of the limits in a direction: 1, 0, or NaN for nothing.
func (m metrics) held(cgroup, device, direction string) (value float64, known bool) {
	value, known = m[fmt.Sprintf(`weir_io_limit_expected_held{cgroup=%q,device=%q,direction=%q}`, cgroup, device, direction)]
	return value, known
}
