package engine

import (
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/internal/targets"
)

// A container goes by its own name and not by a link's, or by its id; what has no valid id is left
// out.
func TestList(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	answer := `[{"Id":"` + a + `","Names":["/other/link","/web"],"Labels":{"weir.plan":"small"}},{"Id":"` + b + `","Names":["/a b"]},{"Id":"../x","Names":["/x"]}]`
	asked, all := "", ""
	socket := sockettest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/containers/json" {
			asked, all = r.URL.Query().Get("filters"), r.URL.Query().Get("all")
			_, _ = io.WriteString(w, answer)
		}
	})
	k := Kind{Maker: docker, Host: "unix://" + socket}
	got, err := k.List(t.Context())
	want := []targets.Listed{{Kind: "docker", Name: "web", Names: []string{"web"}, ID: a, Labels: map[string]string{"weir.plan": "small"}}, {Kind: "docker", Name: b[:12], Names: []string{b[:12]}, ID: b}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := k.List(t.Context(), a, b[:12]); err != nil || asked != `{"id":["`+a+`","`+b[:12]+`"]}` || all != "" {
		t.Errorf("%s, %v", asked, err)
	}
	if _, err := k.ListMade(t.Context(), a); err != nil || asked != `{"id":["`+a+`"]}` || all != "true" {
		t.Errorf("of those that do not run: %s, %s, %v", asked, all, err)
	}
	if _, err := k.List(t.Context(), make([]string, askMost+1)...); err != nil || asked != "" {
		t.Errorf("of many: %s, %v", asked, err)
	}
	answer = "x"
	if got, err := k.List(t.Context()); err == nil || got != nil || !strings.Contains(err.Error(), "docker: ask Docker at "+socket+": read answer") {
		t.Errorf("%+v, %v", got, err)
	}
}
