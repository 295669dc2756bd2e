package health

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/lab"
)

// What answers with more targets than a host can have is refused before they are made, and names that are not UTF-8 come
// as they are.
func TestAnswersAreBounded(t *testing.T) {
	lab.Unit(t)
	path := filepath.Join(t.TempDir(), "h.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/names" {
			Answer(w, http.StatusOK, api.Agent{Targets: []api.AgentTarget{{Target: "cgroup:/\xff"}}})
			return
		}
		_, _ = w.Write([]byte(`{"targets":[` + strings.Repeat("{},", bounds.List) + `{}]}`))
	})}
	done := make(chan error)
	go func() { done <- server.Serve(l) }()
	defer func() { _ = server.Close(); <-done }()
	var doc api.Agent
	if err := Ask(t.Context(), path, "/many", &doc); err == nil || !strings.Contains(err.Error(), "cannot be read: more than 100000 entries of a list") || len(doc.Targets) > 0 {
		t.Errorf("%d targets, %v", len(doc.Targets), err)
	}
	if err := Ask(t.Context(), path, "/names", &doc); err != nil || len(doc.Targets) != 1 || doc.Targets[0].Target != "cgroup:/\xff" {
		t.Errorf("%+v, %v", doc.Targets, err)
	}
}
