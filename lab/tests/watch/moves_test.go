package watch_test

import (
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
func (s *subject) whatWas(t *testing.T, r record) bool {
	compared := 0
	for _, p := range historyOf(t, s.history(), s.cgroup).Points {
		window := time.Duration(p.WindowSeconds * float64(time.Second))
		began := p.Time.Add(-window)
		if p.Number != s.disk.Number || p.Rates == nil || began.Before(r[0].after) || p.Time.Add(100*time.Millisecond).After(r[len(r)-1].before) {
			continue
		}
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
	return compared >= len(names)
}
