package web

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/look/watch"
)

// Every answer has the policy, and the page keeps to it: no script and no style stands in it.
func TestPolicy(t *testing.T) {
	p := aPage(t, Options{History: record(t, 90*time.Second)})
	inline := regexp.MustCompile(`(?i)<script(?:[^>]*\ssrc="/assets/[^"]+")?[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|javascript:|https?://`)
	for _, target := range []string{"/", "/?at=30s", linkOf(webPath), linkOf(webPath) + "&why=1", "/nothing", "/history" + linkOf(webPath)[6:], "/assets/page.js"} {
		w := get(p, target)
		for name, want := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s: %q", target, name, got)
			}
		}
		if found := inline.FindString(w.Body.String()); found != "" && strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %q in the page", target, found)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'self';") {
		t.Error(policy)
	}
}

// The page is only read.
func TestMethods(t *testing.T) {
	p := aPage(t, Options{})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "get"} {
		w := get(p, "/", func(r *http.Request) { r.Method = method })
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	for _, target := range []string{"/", linkOf(webPath), "/assets/page.css", "/stream"} {
		if w := get(p, target, func(r *http.Request) { r.Method = "HEAD" }); w.Code != http.StatusOK {
			t.Errorf("HEAD %s: %d", target, w.Code)
		}
	}
}

// A name that an attacker can have lead here is refused, for every route.
func TestHosts(t *testing.T) {
	p := aPage(t, Options{})
	open := aPage(t, Options{AnyName: true})
	for name, want := range map[string]bool{
		"127.0.0.1:9847": true, "127.0.0.1": true, "[::1]:9847": true, "[::1]": true, "192.0.2.7:9847": true, "localhost:9847": true, "LocalHost": true,
		"node-1:9847": true, "NODE-1.": true,
		"": false, "evil.example:9847": false, "localhost.evil.example": false, "127.0.0.1.evil.example:9847": false, "node-10": false, "evil.example.": false, "[::1": false, "a:b:c": false,
	} {
		for _, target := range []string{"/", linkOf(webPath), "/history?cgroup=/", "/stream?cgroup=a&cgroup=b", "/assets/page.js"} {
			refused := get(p, target, func(r *http.Request) { r.Host = name }).Code == http.StatusMisdirectedRequest
			if refused == want {
				t.Errorf("%q %s: refused: %t", name, target, refused)
			}
		}
		if get(open, "/", func(r *http.Request) { r.Host = name }).Code != http.StatusOK {
			t.Errorf("%q is refused, where clients say who they are", name)
		}
	}
}

// A page of another origin gets nothing but a link to the page, and no question is asked for it.
func TestOtherOrigins(t *testing.T) {
	asked := 0
	p := aPage(t, Options{Open: func() (*host.Host, error) { asked++; return nil, fmt.Errorf("not today") }})
	from := func(site, mode, dest string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", site)
			r.Header.Set("Sec-Fetch-Mode", mode)
			r.Header.Set("Sec-Fetch-Dest", dest)
		}
	}
	for _, c := range []struct {
		from func(*http.Request)
		want int
	}{
		{from("same-origin", "cors", "empty"), 200}, {from("none", "navigate", "document"), 200}, {from("cross-site", "navigate", "document"), 200},
		{from("cross-site", "no-cors", "image"), 403}, {from("same-site", "cors", "empty"), 403}, {from("cross-site", "navigate", "iframe"), 403},
	} {
		if w := get(p, "/", c.from); w.Code != c.want {
			t.Errorf("%d, want %d", w.Code, c.want)
		}
	}
	p.o.Plans.Wait()
	before := asked
	if w := get(p, linkOf(webPath)+"&why=1", from("cross-site", "navigate", "document")); w.Code != 200 || asked != before {
		t.Errorf("another page has weir asked: %d, %d questions", w.Code, asked-before)
	}
	if w := get(p, linkOf(webPath)+"&why=1", from("same-origin", "navigate", "document")); !strings.Contains(w.Body.String(), "weir cannot tell: not today") || asked != before+1 {
		t.Errorf("%d questions: %s", asked-before, w.Body)
	}
}

// hostile are names as others can choose them.
func hostile() []string {
	return []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "a\nb\x00c", "\xff\xfe", `javascript:alert(1)`, "'" + strings.Repeat("x", 5000), "\u202eevil", `{{.}}`, `</template><b>`, "&lt;b&gt;"}
}

// What others name is text, and not endless.
func TestHostileNames(t *testing.T) {
	names := hostile()
	p := aPage(t, Options{Source: &source{make: func(int) *watch.Snapshot {
		s := aHost(time.Now())
		for i, name := range names {
			g := *s.Groups[4]
			g.Path, g.Target = "/"+name, "docker:"+name
			g.Owner.Name = name
			d := g.Devices[0]
			d.Node = "/dev/" + name
			g.Devices = []watch.Device{d}
			s.Disks = append(s.Disks, watch.Disk{Node: "/dev/" + name, Rates: &watch.Rates{WBPS: 1e6}, Use: float64(i)})
			s.Groups = append(s.Groups, &g)
		}
		return s
	}}})
	odd := regexp.MustCompile(`<script>|<img|<b>|href="javascript:|x{200}|\x00|\x{202e}`)
	address := regexp.MustCompile(`(href|data-stream|data-charts)="[^"]*"`) // what leads somewhere has the whole name
	list := address.ReplaceAllString(get(p, "/").Body.String(), `$1=""`)
	if !utf8.ValidString(list) {
		t.Error("the list is no UTF-8")
	}
	if found := odd.FindString(list); found != "" || strings.Count(list, `<tr role="row" data-id`) != len(names)+7+1 {
		t.Errorf("%q is in the list, which has %d rows", found, strings.Count(list, `<tr role="row" data-id`))
	}
	s, err := p.snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		page := get(p, linkOf("/"+name))
		if text := address.ReplaceAllString(page.Body.String(), `$1=""`); page.Code != 200 || odd.MatchString(text) || len(text) > 60_000 {
			t.Errorf("%.40q: %d, %d bytes: %q", name, page.Code, len(text), odd.FindString(text))
		}
		if text := event(groupKind, p.groupEvent(s, nil, "/"+name)); strings.Count(string(text), "\n") != 3 || odd.Match(text) {
			t.Errorf("%.40q: event %.300q", name, text)
		}
	}
	text := p.listOf(s, func(*watch.Group) bool { return true }, nil, nil).since(nil)
	if strings.Count(string(text), "\n") != 3 || odd.MatchString(regexp.MustCompile(`"link":"[^"]*"`).ReplaceAllString(string(text), "")) {
		t.Errorf("event %.300q", text)
	}
	if w := get(p, "/%3Cscript%3Ealert(1)%3C/script%3E"); strings.Contains(w.Body.String(), "<script>alert") {
		t.Error("the address is in the page as it is")
	}
}

// No name takes another one's row, and what is asked wrongly is answered in words.
func TestIDsAndQuestions(t *testing.T) {
	if idOf("8yn0iYCKYHlIj4-BwPqk") == idOf("GReLUrM4wMqfg9yzV3KQ") { // as FNV-1a has it
		t.Error("two paths have one id")
	}
	p := aPage(t, Options{})
	for _, target := range []string{"/history", "/group", "/history?cgroup=/&span=x", "/group?cgroup=/&span=x"} {
		if w := get(p, target); w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), "nil") || !strings.Contains(w.Body.String(), ": ") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}
