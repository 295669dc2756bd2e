package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/api/apitest"
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/look/watch"
)

// A stillTracer says that it saw what a test gives it, at once or when the test says so.
type stillTracer struct {
	hinders error
	fails   error
	sees    trace.Traced
	goes    chan struct{} // nil: at once

	mu     sync.Mutex
	began  []string // the paths of groups
	broken int      // contexts that ended
}

func (f *stillTracer) Hindrance() error { return f.hinders }

func (f *stillTracer) Trace(ctx context.Context, path string, window time.Duration) (trace.Traced, error) {
	f.mu.Lock()
	f.began = append(f.began, path)
	f.mu.Unlock()
	if window != traceFor {
		return trace.Traced{}, errors.New("for another time")
	}
	if f.goes != nil {
		select {
		case <-f.goes:
		case <-ctx.Done():
			f.mu.Lock()
			defer f.mu.Unlock()
			f.broken++
			return trace.Traced{}, ctx.Err()
		}
	}
	return f.sees, f.fails
}

func (f *stillTracer) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.began)
}

// awaitCount waits until so many traces have begun.
func (f *stillTracer) awaitCount(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); f.count() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d traces have begun, want %d", f.count(), n)
		}
	}
}

// part is the part of a group's page about its waits, without the marks of HTML's text.
func part(t *testing.T, text string) string {
	t.Helper()
	m := regexp.MustCompile(`(?s)<section class="card" id="trace".*?</section>`).FindString(text)
	if m == "" {
		t.Fatalf("no part about waits in\n%s", text)
	}
	return strings.NewReplacer("&#34;", `"`, "&#43;", "+").Replace(m)
}

// traceLink is where a group's page says that a trace is to be had; empty: nowhere.
func traceLink(t *testing.T, p *Page, path string) string {
	t.Helper()
	m := regexp.MustCompile(`href="(/group[^"]*trace=[^"#]*)#trace"`).FindStringSubmatch(part(t, get(p, linkOf(path)).Body.String()))
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1], "&amp;", "&")
}

const otherPath = "/system.slice/postgresql.service"

// A group's page has the shares that weir trace has, on request, and no name of a file or process.
func TestTrace(t *testing.T) {
	f := &stillTracer{sees: apitest.Trace()}
	p := aPage(t, Options{Tracer: f})
	before := part(t, get(p, linkOf(webPath)).Body.String())
	if f.count() != 0 || !strings.Contains(before, "Trace for 5 s") || !strings.Contains(before, "weir trace docker:web") {
		t.Errorf("%d traces before anybody asks: %s", f.count(), before)
	}
	body := get(p, traceLink(t, p, webPath)).Body.String()
	told := part(t, body)
	if f.count() != 1 || f.began[0] != webPath {
		t.Errorf("traced %q", f.began)
	}
	for _, want := range []string{"12 480 calls, 1 248/s, 3 failed · p50 31 µs · p99 212 µs · max 9.1 ms", "where the time above p50 went (400 ms)", "where the time went (1.6 s)",
		`<th scope="row">memcg reclaim</th>`, `<td class="figure">83 %</td>`, `<rect class="fill" width="83%"`, "<li>The group is at its memory limit.</li>", "1 204", "818 MB", "67 ms",
		"This kernel has no fentry of the block throttle.", "Lost: 1 200 slow operations not listed", "Traced for 10.0 s, until ", "Trace again"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not in %s", want, told)
		}
	}
	for _, o := range f.sees.Ops {
		shares, _ := o.Shares()
		for _, s := range shares {
			if !strings.Contains(told, ">"+s.Title+"<") {
				t.Errorf("%s is not in %s", s.Title, told)
			}
		}
	}
	for _, secret := range []string{"postgres", "4711", "pg_wal", "/data/base"} {
		if strings.Contains(told, secret) {
			t.Errorf("%q, of files and processes, is in %s", secret, told)
		}
	}
	if strings.Contains(body, "http-equiv") {
		t.Error("without a script the page would trace again each few seconds")
	}
	// Who comes later sees it too, until it is too old.
	if again := part(t, get(p, linkOf(webPath)).Body.String()); f.count() != 1 || !strings.Contains(again, "memcg reclaim") {
		t.Errorf("%d traces: %s", f.count(), again)
	}
	if other := part(t, get(p, linkOf(otherPath)).Body.String()); strings.Contains(other, "memcg reclaim") {
		t.Errorf("another group has it too: %s", other)
	}
	p.tracing.now = func() time.Time { return time.Now().Add(traceKept + time.Second) }
	if old := part(t, get(p, linkOf(webPath)).Body.String()); strings.Contains(old, "memcg reclaim") {
		t.Errorf("after %s: %s", traceKept, old)
	}
}

// Where nothing can be traced, the page says why, starts nothing, and names the command.
func TestNoTrace(t *testing.T) {
	p := aPage(t, Options{})
	if text := part(t, get(p, linkOf(webPath)+"&trace="+p.tracing.token).Body.String()); !strings.Contains(text, "only if it was started with --page-trace") || !strings.Contains(text, "weir trace docker:web") {
		t.Errorf("%s", text)
	}
	cannot := &bpf.Unavailable{Op: "trace", Reason: "the kernel has no type information", Remedy: "boot another"}
	f := &stillTracer{hinders: cannot}
	p = aPage(t, Options{Tracer: f})
	if text := part(t, get(p, linkOf(webPath)+"&trace="+p.tracing.token).Body.String()); f.count() != 0 || !strings.Contains(text, "has no type information; boot another") || traceLink(t, p, webPath) != "" {
		t.Errorf("%d traces: %s", f.count(), text)
	}
	f = &stillTracer{fails: cannot} // which shows only when it is tried
	p = aPage(t, Options{Tracer: f})
	if text := part(t, get(p, traceLink(t, p, webPath)).Body.String()); f.count() != 1 || !strings.Contains(text, "has no type information") {
		t.Errorf("%d traces: %s", f.count(), text)
	}
	f = &stillTracer{}
	p = aPage(t, Options{Tracer: f})
	if text := part(t, get(p, traceLink(t, p, webPath)).Body.String()); !strings.Contains(text, "did no read, write or fsync") {
		t.Errorf("nothing was seen: %s", text)
	}
	// The past, and a group that is gone, cannot be traced.
	p = aPage(t, Options{Tracer: f, History: record(t, 90*time.Second)})
	for _, target := range []string{linkOf(webPath) + "&at=40s", linkOf("/gone")} {
		if body := get(p, target+"&trace="+p.tracing.token).Body.String(); f.count() != 1 || strings.Contains(body, `id="trace"`) {
			t.Errorf("%s: %d traces", target, f.count())
		}
	}
}

// A trace is for all who ask for it meanwhile. Who asks for another group is told to come back, and
// between two traces there is a rest.
func TestTracesAreShared(t *testing.T) {
	f := &stillTracer{sees: apitest.Trace(), goes: make(chan struct{})}
	p := aPage(t, Options{Tracer: f})
	shift := time.Duration(0)
	p.tracing.now = func() time.Time { return time.Now().Add(shift) }
	web, other := traceLink(t, p, webPath), traceLink(t, p, otherPath)
	answers := make(chan string, traceWaiters)
	for range traceWaiters {
		go func() { answers <- get(p, web).Body.String() }()
	}
	f.awaitCount(t, 1)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		p.tracing.mu.Lock()
		n := p.tracing.waiting
		p.tracing.mu.Unlock()
		if n == traceWaiters {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d wait", n)
		}
	}
	if text := part(t, get(p, other).Body.String()); !strings.Contains(text, "weird traces another group just now; ask again in 20 s") {
		t.Errorf("another group meanwhile: %s", text)
	}
	if text := part(t, get(p, web).Body.String()); !strings.Contains(text, "weird answers others just now") {
		t.Errorf("one more that waits: %s", text)
	}
	close(f.goes)
	for range traceWaiters {
		if text := part(t, <-answers); !strings.Contains(text, "memcg reclaim") {
			t.Errorf("one that waited: %s", text)
		}
	}
	if text := part(t, get(p, web).Body.String()); f.count() != 1 || !strings.Contains(text, "memcg reclaim") {
		t.Errorf("%d traces, and right after one: %s", f.count(), text)
	}
	if text := part(t, get(p, other).Body.String()); f.count() != 1 || !strings.Contains(text, "rests") {
		t.Errorf("%d traces, and of another group right after one: %s", f.count(), text)
	}
	shift = traceRest
	if text := part(t, get(p, other).Body.String()); f.count() != 2 || !strings.Contains(text, "memcg reclaim") {
		t.Errorf("%d traces, after the rest: %s", f.count(), text)
	}
}

// Only who can read the page starts a trace: another origin's page, which can lead a browser to any
// address, does not know the link. Neither does a look at what an address has.
func TestWhoTraces(t *testing.T) {
	f := &stillTracer{}
	p := aPage(t, Options{Tracer: f})
	link := traceLink(t, p, webPath)
	for _, token := range []string{"", "1", p.tracing.token[1:], strings.ToLower(p.tracing.token)} {
		get(p, linkTo(webPath, url.Values{"trace": {token}}))
	}
	for _, method := range []string{http.MethodHead, http.MethodPost} {
		get(p, link, func(r *http.Request) { r.Method = method })
	}
	if f.count() != 0 {
		t.Errorf("%d traces", f.count())
	}
	if token := aPage(t, Options{Tracer: f}).tracing.token; token == p.tracing.token || len(token) < 20 {
		t.Errorf("the token %q can be known", token)
	}
	if get(p, link); f.count() != 1 {
		t.Errorf("%d traces", f.count())
	}
}

// A trace goes on when who asked leaves, and ends with the page.
func TestTraceEndsWithThePage(t *testing.T) {
	f := &stillTracer{goes: make(chan struct{})}
	p := aPage(t, Options{Tracer: f})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan struct{})
	link := traceLink(t, p, webPath)
	go func() {
		defer close(left)
		get(p, link, func(r *http.Request) { *r = *r.WithContext(ctx) })
	}()
	f.awaitCount(t, 1)
	cancel()
	<-left
	f.mu.Lock()
	broken := f.broken
	f.mu.Unlock()
	if broken != 0 {
		t.Error("the trace ended with its client")
	}
	began := time.Now()
	p.Close()
	if took := time.Since(began); f.broken != 1 || took > traceMost/2 {
		t.Errorf("the trace did not end with the page, which took %s to close", took)
	}
}

// What others name is text in the part about waits too.
func TestHostileTraces(t *testing.T) {
	for _, name := range hostile() {
		f := &stillTracer{sees: trace.Traced{Report: trace.Report{Advice: []trace.Advice{{Text: name}}, Missing: []trace.Missing{{Hook: name}}}}}
		p := aPage(t, Options{Tracer: f, Source: &source{make: func(int) *watch.Snapshot {
			s := aHost(time.Now())
			s.Groups[0].Path, s.Groups[0].Target = "/x", "docker:"+name
			return s
		}}})
		text := get(p, traceLink(t, p, "/x")).Body.String()
		if found := regexp.MustCompile(`<script>|<img|<b>|href="javascript:|\x00|\x{202e}`).FindString(text); found != "" {
			t.Errorf("%.40q: %q in the page", name, found)
		}
	}
}
