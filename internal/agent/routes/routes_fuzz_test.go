package routes

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/api"
)

// FuzzRoutes: whatever is asked, at whichever route and socket, the answer is a document, in time.
func FuzzRoutes(f *testing.F) {
	paths := []string{Health, Status, Top, Plans, Check, Diff, Log, Reload, "/", "/plans/", "//status"}
	for i := range paths {
		f.Add(uint8(i), "GET", "target=docker:web", []byte(nil), false)
		f.Add(uint8(i), "POST", "most=1&since=2026-11-26T03:10:00Z", []byte("plans: {a: {extends: a}}"), true)
	}
	f.Add(uint8(6), "HEAD", "most=99999999999999999999&%00=\xff", []byte("&a [*a]"), true)
	fake := newFake()
	a := New(fake, Options{})
	handlers := map[bool]http.Handler{false: a.Handler(false), true: a.Handler(true)} // a turn that is not over would end them
	f.Fuzz(func(t *testing.T, path uint8, method, query string, body []byte, change bool) {
		r := httptest.NewRequest("GET", paths[int(path)%len(paths)], strings.NewReader(string(body)))
		r.Method, r.URL.RawQuery = method, query
		w := httptest.NewRecorder()
		handlers[change].ServeHTTP(w, r)
		var doc api.Schema
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || !strings.HasPrefix(doc.Schema, "weir.") {
			t.Errorf("%d %s: %v", w.Code, w.Body, err)
		}
		switch w.Code {
		case 200, 400, 403, 404, 405:
		default:
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if len(fake.by) > 0 && !change {
			t.Error("reading has reloaded")
		}
		fake.by = nil
	})
}
