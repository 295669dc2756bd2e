package watch_test

import (
	"encoding/json"
	"html"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/lab"
)

// causeLeast is the least share of a writer's time that goes to its limit where that is what slows it.
const causeLeast = 70

// The page of weird traces a group on request: a writer that its limit slows waits for that, on the
// page as by weir trace.
func TestPageTraces(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Whole, lab.NoSystemd, lab.FS("ext4"))
	if e.Lane != "native" { // where the kernel can be asked without being said to
		lab.Need(t, lab.BPF)
	}
	s := makeSubject(t, e, "weir-watch-traced")
	weir(t, "set", "cgroup:"+s.cgroup, "--quiet", "--hold", "kernel", "--write", "2MB/s", "--on", s.disk.Node)
	s.run(t, load.Job{Path: load.Direct, Block: block, Size: 16 << 20})
	m := serve(t, "--page", "--page-trace")
	home := strings.TrimSuffix(m.url, "/metrics")
	lab.Await(t, 20*time.Second, "the load", func() bool { return readCounts(t, e, s.dir, s.disk.Number)["wbps"] > 1<<20 })
	before := pageOf(t, home+"/group?"+url.Values{"cgroup": {s.cgroup}}.Encode())
	link := regexp.MustCompile(`href="(/group\?[^"]*trace=[^"#]*)#trace"`).FindStringSubmatch(before)
	if link == nil {
		t.Fatalf("no trace is to be had in\n%s", before)
	}
	told := pageOf(t, home+html.UnescapeString(link[1]))
	cause := regexp.MustCompile(`<th scope="row">([^<]*)</th><td class="part">.*?<td class="figure">([^<]*) %</td>`).FindStringSubmatch(told)
	if cause == nil || cause[1] != trace.BlkThrottle.Title() || number(t, cause[2]) < causeLeast {
		t.Fatalf("the largest part of the writer's time is %q in\n%s", cause, told)
	}
	t.Logf("the page says that %s %% of the time went to %s", cause[2], cause[1])
	var doc api.Trace
	if err := json.Unmarshal(weir(t, "trace", "cgroup:"+s.cgroup, "--for", "3s", "--json"), &doc); err != nil {
		t.Fatal(err)
	}
	share := 0.0
	for _, o := range doc.Ops {
		if o.Kind == trace.Write.String() {
			share = 100 * o.Split[trace.BlkThrottle.String()] / o.Seconds
		}
	}
	if math.Abs(share-float64(number(t, cause[2]))) > 10 {
		t.Errorf("weir trace says %.0f %%", share)
	}
}

// pageOf gets a page.
func pageOf(t *testing.T, at string) string {
	t.Helper()
	r, err := (&http.Client{Timeout: time.Minute}).Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", at, r.Status, err, text)
	}
	return string(text)
}
