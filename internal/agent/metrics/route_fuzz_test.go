package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/look/watch"
)

// FuzzRoute: whatever is asked, of a host whose groups have any names, there is an answer, and what is
// a page of metrics can be parsed.
func FuzzRoute(f *testing.F) {
	for _, method := range []string{"GET", "HEAD", "POST"} {
		f.Add(method, Route, "groups=all", "text/plain", "", "/web", "docker:web")
	}
	f.Add("GET", Route, "groups=", "application/openmetrics-text;version=1.0.0,*/*;q=0.1", "gzip, zstd", "/a\xff", "pod:a\"\n{}\\")
	f.Add("GET", "/", "groups=%zz&groups=all", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "gzip;q=0", "", "")
	f.Fuzz(func(t *testing.T, method, path, query, accept, encoding, group, target string) {
		r := httptest.NewRequest("GET", Route, nil)
		r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
		r.Header = http.Header{"Accept": {accept}, "Accept-Encoding": {encoding}}
		s := &still{s: &watch.Snapshot{Watched: 1, Groups: []*watch.Group{{Path: group, Target: target, Paced: &watch.Paced{WBPS: 5}}}}}
		w := httptest.NewRecorder()
		Options{Feed: NewFeed(s, 0), Version: "1.2.3"}.Handler().ServeHTTP(w, r)
		switch w.Code {
		case http.StatusOK:
			if kind := w.Header().Get("Content-Type"); strings.HasPrefix(kind, "text/plain") && w.Header().Get("Content-Encoding") == "" && method == "GET" {
				if got := parse(t, w.Body.Bytes())["weir_agent_groups{}"]; got != 1 {
					t.Errorf("%v groups", got)
				}
			}
		case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		default:
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	})
}
