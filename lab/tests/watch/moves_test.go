package watch_test

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// A page is what was scraped, from before to after.
type page struct {
	metrics
	before, after time.Time
}

func (m scraper) scrapeAt(t *testing.T) page {
	t.Helper()
	p := page{before: time.Now()}
	p.metrics = m.scrape(t)
	p.after = time.Now()
	return p
}

// shared is how old figures may be that several scrapers get.
const shared = 100 * time.Millisecond

// whenScraped compares counters with the kernel's at the time of the scrape.
func (s *subject) whenScraped(t *testing.T, r record, p page) {
	for name, v := range p.of(s.cgroup, s.disk.Node).totals {
		least, _ := r.at(name, p.before.Add(-shared))
		_, most := r.at(name, p.after)
		t.Logf("the metrics: %s %.0f, the kernel %.0f to %.0f", name, v, least, most)
		if v < least || v > most {
			t.Errorf("the metrics: %s is %.0f, the kernel's counter was %.0f to %.0f", name, v, least, most)
		}
	}
}

// whatWas compares what weird has recorded, a second each. It returns whether enough was even
// enough for that to say something.
func (s *subject) whatWas(t *testing.T, r record, charts []chartPoint) bool {
	compared, drawn := 0, 0
	for _, p := range historyOf(t, s.history(), s.cgroup).Points {
		window := time.Duration(p.WindowSeconds * float64(time.Second))
		began := p.Time.Add(-window)
		if p.Number != s.disk.Number || p.Rates == nil || began.Before(r[0].after) || p.Time.Add(100*time.Millisecond).After(r[len(r)-1].before) {
			continue
		}
		drawn += s.isDrawn(t, charts, p.Time, window, numbers(t, p.Rates))
		for name, rate := range numbers(t, p.Rates) {
			least, most, err := r.rates(name, began, began.Add(50*time.Millisecond), window)
			if err != nil {
				t.Error(err)
			}
			if t.Logf("weir history: %s %.0f, the kernel %.0f to %.0f", name, rate, least, most); most <= steady*least {
				compared++
			}
			if rate < least*(1-close1) || rate > most*(1+close1) {
				t.Errorf("weir history: %s is %.0f, by the kernel's counters %.0f to %.0f", name, rate, least, most)
			}
		}
		for name, want := range readRule(t, s.e, s.dir, s.disk.Number) {
			if got := numbers(t, p.Limit)[name]; got != float64(want) {
				t.Errorf("weir history: limit %s is %.0f, want %d", name, got, want)
			}
		}
	}
	return compared >= len(names) && drawn > 0
}

// A chartPoint is what the page adds to the charts of a group.
type chartPoint struct {
	Time    float64 `json:"time"`
	Devices []struct {
		Node   string              `json:"node"`
		Rates  map[string]float64  `json:"rates"`
		Limits map[string]*float64 `json:"limits"`
	} `json:"devices"`
}

// charts follows the page of a group, as a browser does, until stop is called.
func (m scraper) charts(t *testing.T, cgroup string) (stop func() []chartPoint) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(m.url, "/metrics")+"/stream?cgroup="+url.QueryEscape(cgroup), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var all []chartPoint
	var reading sync.WaitGroup
	reading.Go(func() {
		lines := bufio.NewScanner(answer.Body)
		for lines.Scan() {
			var event struct {
				Point *chartPoint `json:"point"`
			}
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if is && json.Unmarshal([]byte(data), &event) == nil && event.Point != nil {
				all = append(all, *event.Point)
			}
		}
	})
	return func() []chartPoint {
		cancel()
		reading.Wait()
		_ = answer.Body.Close()
		return all
	}
}

// isDrawn compares a point of weir history with that of the page of the same time, and returns how many there are. What
// a scrape has read within the window is a point of the page's own, and then the two differ.
func (s *subject) isDrawn(t *testing.T, charts []chartPoint, at time.Time, window time.Duration, rates map[string]float64) (points int) {
	end := float64(at.UnixMilli()) / 1000
	for i := 1; i < len(charts); i++ {
		p := charts[i]
		if math.Abs(p.Time-end) > 0.0015 || math.Abs(p.Time-charts[i-1].Time-window.Seconds()) > 0.003 {
			continue
		}
		for _, d := range p.Devices {
			if d.Node != s.disk.Node {
				continue
			}
			points++
			for name, want := range rates { // history has three digits
				if got := d.Rates[name]; math.Abs(got-want) > max(0.002*want, 0.5) {
					t.Errorf("the page: %s is %.1f, and weir history has %.1f", name, got, want)
				}
			}
			for name, want := range readRule(t, s.e, s.dir, s.disk.Number) {
				if got := d.Limits[name]; got == nil || *got != float64(want) {
					t.Errorf("the page: limit %s is %v, want %d", name, got, want)
				}
			}
			t.Logf("the page at %.3f: %v", p.Time, d.Rates)
		}
	}
	return points
}
