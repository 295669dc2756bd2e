package health

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/api"
)

// FuzzRoutes: whatever is asked of a daemon's health, by its socket or by probes, the answer is a
// document or "ok".
func FuzzRoutes(f *testing.F) {
	for _, path := range []string{Route, StatusRoute, CountsRoute, LiveRoute, ReadyRoute, "/", "//health", "/%00"} {
		f.Add("GET", path, "a=b", "")
		f.Add("HEAD", path, "%zz", "")
		f.Add("POST", path, "", "{}")
	}
	all := []http.Handler{
		handler("1.2.3", time.Now(), nil),
		handler("1.2.3", time.Now(), Documents{StatusRoute: func() any { return api.HealthOf("1.2.3", 7, time.Second) }, CountsRoute: func() any { return api.AgentCountsOf(agent.Counts{}) }}),
		Probes{Live: func() error { return nil }, Ready: func() error { return errors.New("not registered") }}.handler(),
	}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		for i, h := range all {
			r := httptest.NewRequest("GET", "/", strings.NewReader(body))
			r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if i == 2 && w.Code == http.StatusOK && w.Body.String() == "ok\n" {
				continue
			}
			var doc api.Schema
			if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || !strings.HasPrefix(doc.Schema, "weir.") {
				t.Errorf("%d, %s %q: %d %s: %v", i, method, path, w.Code, w.Body, err)
			}
		}
	})
}
