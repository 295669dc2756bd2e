package web

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/watch"
)

// While a page is live, weir measures whether limits are held: from counters, over 5 s at least, and
// where the group is at its limit. The list, a group's page and the streams say the same.
func TestWhatIsMeasured(t *testing.T) {
	began := time.Now()
	wrote := map[string]float64{"/system.slice/docker-0123456789ab.scope": 9.9e6, "/system.slice/docker-ba9876543210.scope": 48e6} // a second
	words := map[string]string{"/system.slice/docker-0123456789ab.scope": "measured: held", "/system.slice/docker-ba9876543210.scope": "measured: NOT HELD"}
	p := aPage(t, Options{Every: 5 * time.Millisecond, Source: &source{make: func(n int) *watch.Snapshot {
		s := aHost(began.Add(time.Duration(n) * time.Second))
		for _, g := range s.Groups {
			g.Devices[0].Total.WrittenBytes += uint64(wrote[g.Path] * float64(n))
		}
		return s
	}}})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(p.Close)
	if text := get(p, "/").Body.String(); strings.Contains(text, "measured: ") {
		t.Error("something is measured before a page is live")
	}
	c := follow(t, server.URL+"/stream")
	told := map[string]string{}
	for n := 1; n <= 12; n++ {
		var e listEvent
		if kind := c.next(&e); kind != listKind {
			t.Fatalf("a %q", kind)
		}
		for _, r := range e.Rows {
			told[r.Path] = r.Measured
			if n <= 5 && r.Measured != "" {
				t.Errorf("after %d readings %s is %q", n, r.Path, r.Measured)
			}
		}
	}
	list := get(p, "/").Body.String()
	for path, is := range told {
		if is != words[path] {
			t.Errorf("%s is %q, want %q", path, is, words[path])
		}
		if word := words[path]; word != "" && !strings.Contains(list, `data-f="measured">`+word) {
			t.Errorf("the list does not say %q", word)
		}
	}
	for path, want := range map[string]string{"/system.slice/docker-0123456789ab.scope": "held: 9.90 MB/s over ", "/system.slice/docker-ba9876543210.scope": "NOT HELD: 48.0 MB/s over "} {
		text := get(p, linkTo(path, nil)).Body.String()
		if !strings.Contains(text, `data-c="0.wbps.measured">`+want) {
			t.Errorf("%s: the page does not say %q", path, want)
		}
		s := p.follow.now()
		if got := p.groupEvent(s, p.follow.measured(), path).Cells["0.wbps.measured"]; !strings.HasPrefix(got, want) {
			t.Errorf("%s: the stream says %q", path, got)
		}
	}
	if text := get(p, linkTo("/idle.slice", nil)).Body.String(); !strings.Contains(text, "not told: it was not at its limit long enough") {
		t.Error("something is told of a group that does nothing")
	}
}
