package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/top"
)

// get asks a page without a network.
func get(p *Page, target string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "127.0.0.1:9847"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func linkOf(path string) string { return linkTo(path, nil) }

const webPath = "/system.slice/docker-0123456789ab.scope"

func TestRoutes(t *testing.T) {
	p := aPage(t, Options{History: record(t, 90*time.Second)})
	for target, want := range map[string]struct {
		status int
		kind   string
		text   string
	}{
		"/":                              {200, "text/html; charset=utf-8", "docker:legacy"},
		"/?sort=write&reverse=1":         {200, "text/html; charset=utf-8", `aria-sort="ascending"`},
		"/?filter=postgres":              {200, "text/html; charset=utf-8", "unit:postgresql.service"},
		"/?filter=none-such":             {200, "text/html; charset=utf-8", "No group has this text in its name."},
		"/?filter=postgresql":            {200, "text/html; charset=utf-8", `id="count">1 group</p>`},
		"/?active=1":                     {200, "text/html; charset=utf-8", "docker:web"},
		"/?at=30s":                       {200, "text/html; charset=utf-8", "The host at <strong>"},
		"/?at=1h":                        {404, "text/html; charset=utf-8", "nothing was recorded at"},
		"/?at=noon":                      {400, "text/html; charset=utf-8", "write how long ago"},
		"/?sort=color":                   {400, "text/html; charset=utf-8", "write one of target"},
		linkOf(webPath):                  {200, "text/html; charset=utf-8", "Write on /dev/vdb: mean"},
		linkOf(webPath) + "&span=10m":    {200, "text/html; charset=utf-8", "The last 10 min"},
		linkOf(webPath) + "&at=40s":      {200, "text/html; charset=utf-8", "The group at <strong>"},
		linkOf(webPath) + "&span=1s":     {400, "text/html; charset=utf-8", "write a time from 1m"},
		linkOf("/gone"):                  {404, "text/html; charset=utf-8", "there is no such group"},
		"/group":                         {400, "text/html; charset=utf-8", "name the group"},
		"/history" + linkOf(webPath)[6:]: {200, "application/json", `"wbps":[`},
		"/history?cgroup=/gone":          {404, "text/html; charset=utf-8", "nothing of cgroup:/gone"},
		"/history":                       {400, "text/html; charset=utf-8", "cgroup"},
		"/assets/page.js":                {200, "text/javascript; charset=utf-8", "use strict"},
		"/assets/page.css":               {200, "text/css; charset=utf-8", "prefers-color-scheme"},
		"/assets/uplot.js":               {200, "text/javascript; charset=utf-8", "(v" + UPlot + ")"},
		"/assets/uplot.LICENSE":          {200, "text/plain; charset=utf-8", "The MIT License"},
		"/assets/icon.svg":               {200, "image/svg+xml", "<svg"},
		"/assets/":                       {404, "text/html; charset=utf-8", "nothing is there"},
		"/assets/..%2fpage.go":           {404, "text/html; charset=utf-8", "nothing is there"},
		"/favicon.ico":                   {404, "text/html; charset=utf-8", "nothing is there"},
		"/stream?cgroup=a&cgroup=b":      {400, "text/html; charset=utf-8", "name one"},
	} {
		w := get(p, target)
		text := strings.ReplaceAll(w.Body.String(), "&#34;", `"`)
		if w.Code != want.status || w.Header().Get("Content-Type") != want.kind || !strings.Contains(text, want.text) {
			t.Errorf("%s: %d %s, without %q:\n%.2000s", target, w.Code, w.Header().Get("Content-Type"), want.text, text)
		}
	}
}

// The figures of the page are those of weir top's document of the same snapshot, in weir's own
// spelling: in the list, in a group's page, and in what a stream sends.
func TestFiguresAreTops(t *testing.T) {
	at := time.Now()
	p := aPage(t, Options{Source: &source{make: func(int) *watch.Snapshot { return aHost(at) }}})
	s, err := p.snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	doc := api.TopOf(s, top.Options{}.Takes, api.TopBeside{})
	list := get(p, "/").Body.String()
	sent := p.listOf(s, top.Options{}.Takes, nil, nil)
	for i, g := range doc.Groups {
		from := strings.Index(list, `data-id="`+idOf(g.Cgroup)+`"`)
		if from < 0 {
			t.Errorf("%s is not in the list", g.Target)
			continue
		}
		tr, _, _ := strings.Cut(list[from:], "</tr>")
		cells := map[string]string{}
		for _, m := range regexp.MustCompile(`data-f="(\w+)">([^<]*)<`).FindAllStringSubmatch(tr, -1) {
			cells[m[1]] = strings.TrimSpace(m[2])
		}
		d := g.Devices[0]
		want := map[string]string{"target": g.Target, "read": limit.FormatMeasured(d.Rates.RBPS), "write": limit.FormatMeasured(d.Rates.WBPS),
			"readOps": top.OpsText(d.Rates.RIOPS), "writeOps": top.OpsText(d.Rates.WIOPS), "wait": top.PercentText(*g.Pressure.SomePercent), "dirty": limit.FormatMeasured(float64(*g.Dirty))}
		for _, percent := range []*float64{d.Percent.WBPS, d.Percent.RBPS, d.Percent.WIOPS} {
			if percent != nil && (want["percent"] == "" || *percent > largest(d.Percent)-1e-9) {
				want["percent"] = top.PercentText(*percent)
			}
		}
		for name, text := range want {
			if cells[name] != text {
				t.Errorf("%s: %s: %q in the list, %q in weir top", g.Target, name, cells[name], text)
			}
		}
		if r := sent.Rows[i]; r.Write != cells["write"] || r.Percent != cells["percent"] || r.Held != cells["held"] {
			t.Errorf("%s: a stream sends %+v", g.Target, r)
		}
		page := get(p, linkOf(g.Cgroup)).Body.String()
		e := p.groupEvent(s, nil, g.Cgroup)
		for id, text := range map[string]string{"0.wbps.now": want["write"] + "/s", "0.rbps.now": want["read"] + "/s", "0.wiops.now": want["writeOps"] + " ops/s", "some": want["wait"], "dirty": want["dirty"],
			"0.wbps.total": limit.FormatMeasured(float64(d.Total.WrittenBytes))} {
			if e.Cells[id] != text || !strings.Contains(page, `data-c="`+id+`">`+text+"<") {
				t.Errorf("%s: %s: %q, want %q; or not in the page", g.Target, id, e.Cells[id], text)
			}
		}
		for _, k := range limit.Keys {
			if e.Point.Devices[0].Rates[k.String()] != d.Rates.Get(k) {
				t.Errorf("%s: %s in the chart: %+v", g.Target, k, e.Point)
			}
		}
	}
}

func largest(p api.TopPercent) float64 {
	most := 0.0
	for _, v := range []*float64{p.RBPS, p.WBPS, p.RIOPS, p.WIOPS} {
		if v != nil {
			most = max(most, *v)
		}
	}
	return most
}

// What the charts show is what weir history has.
func TestChartsAreHistorys(t *testing.T) {
	dir := record(t, 5*time.Minute)
	p := aPage(t, Options{History: dir})
	now := time.Now()
	c, err := p.past(t.Context(), "docker:web", period{from: now.Add(-10 * time.Minute), to: now, span: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for i, at := range c.Times {
		got := c.Devices[0].Rates["wbps"][i]
		if got == nil {
			continue
		}
		known++
		end := time.UnixMilli(int64(at * 1000))
		// A bin is a second, and lies across two points.
		a, b := aHost(end.Truncate(time.Second)).Groups[3].Devices[0].Rates.WBPS, aHost(end.Truncate(time.Second).Add(time.Second)).Groups[3].Devices[0].Rates.WBPS
		if *got < min(a, b)*.99 || *got > max(a, b)*1.01 {
			t.Errorf("%s: %.0f, recorded were %.0f and %.0f", end, *got, a, b)
		}
		if l := c.Devices[0].Limits["wbps"][i]; l == nil || *l != 10e6 {
			t.Errorf("%s: limit %v", end, l)
		}
	}
	if known < 295 || known > 302 || len(c.Words) == 0 || len(c.Lines) == 0 {
		t.Errorf("%d points, %q, %d lines", known, c.Words, len(c.Lines))
	}
	if len(c.Times) > pointsMost+1 {
		t.Errorf("%d points", len(c.Times))
	}
}

// A long list keeps its bound, and says what is left out.
func TestManyGroups(t *testing.T) {
	p := aPage(t, Options{Source: &source{make: func(int) *watch.Snapshot { return manyGroups(rowsMost + 50) }}})
	text := get(p, "/").Body.String()
	if n := strings.Count(text, `<tr role="row" data-id`); n != rowsMost+1 || !strings.Contains(text, `<span id="leftout">57</span>`) || !strings.Contains(text, "docker:legacy") {
		t.Errorf("%d rows", n)
	}
}

// A question is answered by weir why and the plans, from the host's files.
func TestAsk(t *testing.T) {
	p := aPage(t, Options{Source: &source{make: func(int) *watch.Snapshot {
		s := aHost(time.Now())
		s.Groups[0].Path, s.Groups[0].Target = "/batch", "cgroup:/batch"
		return s
	}}})
	text := get(p, "/group?cgroup=/batch&why=1").Body.String()
	if !strings.Contains(text, `<article class="finding`) || strings.Contains(text, "weir cannot tell: ") {
		t.Errorf("%s", text[strings.Index(text, `id="why"`):])
	}
	// While one is asked, another one waits for a moment only.
	p.asking <- struct{}{}
	began := time.Now()
	if text := get(p, "/group?cgroup=/batch&why=1").Body.String(); !strings.Contains(text, "weird answers others just now") || time.Since(began) < waitMost {
		t.Errorf("after %s: %s", time.Since(began), text[strings.Index(text, `id="why"`):])
	}
	<-p.asking
}

// What the source cannot read is said.
func TestTrouble(t *testing.T) {
	s := &source{}
	s.fail("the kernel is asleep")
	w := get(aPage(t, Options{Source: s}), "/")
	if body, _ := io.ReadAll(w.Body); w.Code != 500 || !strings.Contains(string(body), "the kernel is asleep") {
		t.Errorf("%d: %s", w.Code, body)
	}
	if w := get(aPage(t, Options{}), "/?at=1m"); w.Code != 404 || !strings.Contains(w.Body.String(), "nothing is recorded") {
		t.Errorf("%d", w.Code)
	}
}

// Each asset is served under an address with its sum, and may be kept by browsers then.
func TestAssets(t *testing.T) {
	p := aPage(t, Options{})
	list := get(p, "/").Body.String()
	found := regexp.MustCompile(`(?:src|href)="(/assets/[^"]+\?v=[^"]+)"`).FindAllStringSubmatch(list, -1)
	if len(found) != 5 {
		t.Fatalf("%q", found)
	}
	for _, m := range found {
		if w := get(p, m[1]); w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %s", m[1], w.Code, w.Header().Get("Cache-Control"))
		}
	}
	text, err := os.ReadFile(filepath.Join("assets", "uplot.js"))
	if err != nil || !strings.HasPrefix(string(text), "/*! https://github.com/leeoniya/uPlot (v"+UPlot+") */") {
		t.Errorf("the chart library is not of version %s: %v", UPlot, err)
	}
}

// Without a script the page loads itself anew, and everything is a link or a form.
func TestWithoutAScript(t *testing.T) {
	p := aPage(t, Options{History: record(t, 90*time.Second)})
	list, group := get(p, "/").Body.String(), get(p, linkOf(webPath)).Body.String()
	for _, want := range []string{`<noscript><meta http-equiv="refresh"`, `<form class="tools" method="get" action="/"`, `href="/?sort=write"`, `<a href="/group?cgroup=%2Fsystem.slice`} {
		if !strings.Contains(list, want) {
			t.Errorf("%q is not in the list", want)
		}
	}
	for _, want := range []string{`<noscript><meta http-equiv="refresh"`, `<caption class="hidden">What the group did, newest first</caption>`, `&amp;why=1#why"`} {
		if !strings.Contains(group, want) {
			t.Errorf("%q is not in the group's page", want)
		}
	}
	if past := get(p, "/?at=30s").Body.String(); strings.Contains(past, "noscript") {
		t.Error("the past is loaded anew")
	}
}

// FuzzRoutes asks for anything.
func FuzzRoutes(f *testing.F) {
	for _, target := range []string{"/", "/?sort=write&reverse=1&filter=a&active=1", "/?at=30s", "/?at=2026-11-26+03:10", linkTo(webPath, url.Values{"span": {"10m"}, "at": {"30s"}}),
		"/group?cgroup=/batch&why=1", linkTo(webPath, url.Values{"trace": {"1"}}), "/history?cgroup=/x&span=744h", "/stream?cgroup=%ff", "/stream", "/assets/page.js?v=x", "/assets/%2e%2e/page.go", "/%00"} {
		f.Add("GET", "127.0.0.1", target, "same-origin")
	}
	f.Add("HEAD", "[::1]:1", "/stream", "cross-site")
	p := aPage(f, Options{History: record(f, time.Minute)})
	f.Fuzz(func(t *testing.T, method, name, target, site string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || method == "" {
			return
		}
		if u.Path == "/stream" && len(u.Query()["cgroup"]) < 2 {
			method = "HEAD" // else it does not end
		}
		r := &http.Request{Method: method, URL: u, Host: name, Header: http.Header{"Sec-Fetch-Site": {site}}, RequestURI: target}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r.WithContext(t.Context()))
		if w.Code < 200 || w.Code == 500 || w.Body.Len() > 2<<20 {
			t.Errorf("%s %q: %d, %d bytes: %.300s", method, target, w.Code, w.Body.Len(), w.Body)
		}
		if w.Header().Get("Content-Security-Policy") != policy {
			t.Error("no policy")
		}
		if strings.Contains(w.Body.String(), "make the page:") {
			t.Errorf("%q: %s", target, w.Body)
		}
	})
}
