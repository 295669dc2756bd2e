package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
)

// page is a parsed answer: values by name and labels.
type page map[string]float64

// parse reads a page as Prometheus' own parser does, and checks what promtool would.
func parse(t *testing.T, text []byte) page {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	known := map[string]Metric{}
	for _, m := range All() {
		known[m.Name] = m
	}
	p := page{}
	for name, f := range families {
		m, is := known[name]
		if !is || f.GetHelp() != m.Help {
			t.Errorf("%s: not listed, or another help: %q", name, f.GetHelp())
		}
		if counts := f.GetType() == dto.MetricType_COUNTER; counts != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %v", name, f.GetType())
		}
		for _, one := range f.GetMetric() {
			var labels []string
			for _, l := range one.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			p[name+"{"+strings.Join(labels, ",")+"}"] = one.GetCounter().GetValue() + one.GetGauge().GetValue() + float64(one.GetHistogram().GetSampleCount())
		}
	}
	return p
}

// get asks a handler.
func get(t *testing.T, h http.Handler, target string) (int, []byte) {
	t.Helper()
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, target, nil))
	body, err := io.ReadAll(r.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.Code, body
}

// handlerOf serves a copy of a machine.
func handlerOf(t *testing.T, files map[string]string) (http.Handler, *cgroupfs.Hierarchy) {
	t.Helper()
	h := hosttest.Open(t, "v2", files, host.Options{})
	w, err := limiting.Manager{Host: h}.Watch(0, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	io, err := h.IO()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Feed: NewFeed(w, time.Second), Version: "1.2.3"}.Handler(), io
}

// Each counter and limit of a copy of a machine is on the page as the kernel's files have it, and
// nothing else is.
func TestPageIsWhatTheFilesSay(t *testing.T) {
	h, io := handlerOf(t, map[string]string{
		"sys/fs/cgroup/batch/io.pressure":       "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n",
		"sys/fs/cgroup/batch/memory.stat":       "file_dirty 4096\nfile_writeback 8192\n",
		"sys/fs/cgroup/free.slice/io.stat":      "254:0 rbytes=11 wbytes=12 rios=13 wios=14\n",
		"sys/fs/cgroup/free.slice/io.max":       "",
		"sys/fs/cgroup/free.slice/cgroup.procs": "",
	})
	for target, free := range map[string]bool{"/metrics": false, "/metrics?groups=limited": false, "/metrics?groups=all": true} {
		status, text := get(t, h, target)
		if status != http.StatusOK {
			t.Fatalf("%s: %d: %s", target, status, text)
		}
		p := parse(t, text)
		want := page{}
		err := io.Root().Walk(func(g cgroupfs.Group) error {
			stats, err := g.Stats()
			if cgroupfs.IsGone(err) || g.IsRoot() {
				return nil
			}
			rules, ruleErr := g.RulesIfAny()
			if len(rules) == 0 && !free {
				return errors.Join(err, ruleErr)
			}
			nodes := map[string]string{"254:0": "/dev/vda", "254:16": "/dev/vdb"}
			for _, s := range stats {
				at := fmt.Sprintf("{cgroup=%s,device=%s}", g.Path(), nodes[s.Device.String()])
				want["weir_io_read_bytes_total"+at], want["weir_io_written_bytes_total"+at] = float64(s.ReadBytes), float64(s.WrittenBytes)
				want["weir_io_reads_total"+at], want["weir_io_writes_total"+at] = float64(s.Reads), float64(s.Writes)
			}
			for _, r := range rules {
				at := fmt.Sprintf("{cgroup=%s,device=%s}", g.Path(), nodes[r.Device.String()])
				for k, name := range map[limit.Key]string{limit.RBPS: "read_bytes", limit.WBPS: "written_bytes", limit.RIOPS: "reads", limit.WIOPS: "writes"} {
					if n, bound := r.Limit.Get(k).Number(); bound {
						want["weir_io_limit_"+name+"_per_second"+at] = float64(n)
					}
				}
			}
			return errors.Join(err, ruleErr)
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(want) < 8 {
			t.Fatalf("the copy has only %d figures", len(want))
		}
		for series, value := range want {
			if got, is := p[series]; !is || got != value {
				t.Errorf("%s: %s = %v (%v), want %v", target, series, got, is, value)
			}
		}
		for series := range p {
			figure := strings.HasPrefix(series, "weir_io_") && !strings.Contains(series, "_pressure_") && !strings.Contains(series, "_expected_")
			if _, is := want[series]; figure && !is {
				t.Errorf("%s: %s, which no file has", target, series)
			}
		}
		for series, value := range (page{
			"weir_io_pressure_waiting_seconds_total{cgroup=/batch}": 1.5, "weir_io_pressure_stalled_seconds_total{cgroup=/batch}": 0.25,
			"weir_group_dirty_bytes{cgroup=/batch}": 12288, "weir_group_writeback_bytes{cgroup=/batch}": 8192,
			"weir_group_info{cgroup=/batch,owner=unknown,target=cgroup:/batch}": 1, "weir_agent_unreadable_groups{}": 0,
			"weir_io_limit_expected_held{cgroup=/batch,device=/dev/vdb,direction=read}": 1,
		}) {
			if got, is := p[series]; !is || got != value {
				t.Errorf("%s: %s = %v (%v), want %v", target, series, got, is, value)
			}
		}
		if !strings.Contains(string(text), `weir_agent_build_info{goversion="go1.`) || !strings.Contains(string(text), `version="1.2.3"`) {
			t.Errorf("%s: no version in\n%s", target, text)
		}
	}
}

func TestRefused(t *testing.T) {
	h, _ := handlerOf(t, nil)
	for target, want := range map[string]int{"/": 404, "/metrics/x": 404, "/metrics?groups=some": 400} {
		if status, _ := get(t, h, target); status != want {
			t.Errorf("%s: %d, want %d", target, status, want)
		}
	}
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodPost, "/metrics", nil))
	if r.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", r.Code)
	}
}

// still is a sampler that always sees the same.
type still struct {
	s     *watch.Snapshot
	err   error
	count int
}

func (s *still) Sample(context.Context) (*watch.Snapshot, error) {
	s.count++
	return s.s, s.err
}

// Names of groups come from others: they can be no UTF-8, have quotes and line breaks, and be made
// to look like each other. The page can be read all the same.
func TestHostileNames(t *testing.T) {
	s := &still{s: &watch.Snapshot{Watched: 4, Unread: 1}}
	for _, path := range []string{"/a\xff", `/a\xff`, "/b\"\n{}\\", "/c"} {
		s.s.Groups = append(s.s.Groups, &watch.Group{Path: path, Target: "cgroup:" + path, Paced: &watch.Paced{WBPS: 5}})
	}
	status, text := get(t, Options{Feed: NewFeed(s, 0)}.Handler(), Route)
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	p := parse(t, text)
	for series, want := range (page{
		"weir_group_paced_bytes_per_second{cgroup=/a\\xff}": 5, "weir_group_paced_bytes_per_second{cgroup=/b\"\n{}\\}": 5,
		"weir_group_paced_bytes_per_second{cgroup=/c}": 5, "weir_agent_unreadable_groups{}": 2, "weir_agent_groups{}": 4,
	}) {
		if got, is := p[series]; !is || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, is, want)
		}
	}
}

// However many ask, the groups are read once in a time; an error is not kept.
func TestFeed(t *testing.T) {
	s := &still{err: errors.New("no groups")}
	f := NewFeed(s, time.Second)
	now := time.Unix(1e9, 0)
	f.now = func() time.Time { return now }
	if status, text := get(t, Options{Feed: f}.Handler(), Route); status != http.StatusInternalServerError || !strings.Contains(string(text), "no groups") {
		t.Errorf("%d: %s", status, text)
	}
	s.s, s.err = &watch.Snapshot{}, nil
	for range 3 {
		if _, err := f.Snapshot(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if now = now.Add(time.Second); s.count != 2 {
		t.Errorf("%d readings", s.count)
	}
	if _, err := f.Snapshot(t.Context()); err != nil || s.count != 3 {
		t.Errorf("%d readings, %v", s.count, err)
	}
}
