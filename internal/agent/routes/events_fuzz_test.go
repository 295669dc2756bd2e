package routes

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/api"
)

// A deadlined recorder takes deadlines, as a socket does.
type deadlined struct{ *httptest.ResponseRecorder }

func (deadlined) SetWriteDeadline(time.Time) error { return nil }

// FuzzEvents: whatever is asked at a route that is followed by a client that then goes, the answer is the
// beginning of a stream or a document, and no follower is left.
func FuzzEvents(f *testing.F) {
	f.Add("GET", "", "")
	f.Add("HEAD", "", "top")
	f.Add("GET", "target=%zz&&a=b", "\xff")
	f.Add("POST", "since=1", "plans: {}")
	f.Add("GET", "", "x")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	a := New(newFake(), Options{})
	handler := a.Handler(false)
	f.Fuzz(func(t *testing.T, method, query, body string) {
		path, begins := Events, ": weird tells of changes\n\n"
		if len(body)%2 == 1 {
			path, begins = Follow, ": weird tells of what groups do\n\n"
		}
		r := httptest.NewRequest("GET", path, strings.NewReader(body)).WithContext(gone)
		r.Method, r.URL.RawQuery = method, query
		w := httptest.NewRecorder()
		handler.ServeHTTP(deadlined{w}, r)
		var doc api.Schema
		switch {
		case w.Code == http.StatusOK:
			if method != "GET" || !strings.HasPrefix(w.Body.String(), begins) {
				t.Errorf("%s %q: %q", method, query, w.Body)
			}
		case w.Code != http.StatusBadRequest && w.Code != http.StatusMethodNotAllowed:
			t.Errorf("%d %s", w.Code, w.Body)
		default:
			if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || !strings.HasPrefix(doc.Schema, "weir.") {
				t.Errorf("%d %s: %v", w.Code, w.Body, err)
			}
		}
		if a.changes.followed() || a.groups.followed() {
			t.Fatal("a follower that has gone is still told")
		}
	})
}
