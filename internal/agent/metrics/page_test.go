package metrics

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/watch"
)

// fresh is a sampler that always sees something new.
type fresh struct{ count int }

func (s *fresh) Sample(context.Context) (*watch.Snapshot, error) {
	s.count++
	return &watch.Snapshot{Watched: s.count}, nil
}

// Who follows a feed has what is read for others, and has it read only where nobody else does.
func TestNewer(t *testing.T) {
	s := &fresh{}
	f := NewFeed(s, time.Second)
	now := time.Unix(1e9, 0)
	f.now = func() time.Time { return now }
	newer := func(seen *watch.Snapshot) *watch.Snapshot {
		t.Helper()
		got, err := f.Newer(t.Context(), seen, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	a := newer(nil)
	if b := newer(a); b == a || s.count != 2 {
		t.Errorf("seen already, and %d readings", s.count)
	} else if c := newer(a); c != b || s.count != 2 {
		t.Errorf("another one was there, and %d readings", s.count)
	}
	scraped, err := f.Read(t.Context())
	if err != nil || newer(a) != scraped || s.count != 3 {
		t.Errorf("what another had read: %d readings, %v", s.count, err)
	}
	if now = now.Add(time.Second); newer(a) == scraped || s.count != 4 {
		t.Errorf("an old one: %d readings", s.count)
	}
}

// The page answers all that is not for Prometheus; without a page nothing is there.
func TestHandlerWithAPage(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) })
	o := Options{Feed: NewFeed(&still{s: &watch.Snapshot{}}, 0), Page: page}
	for target, want := range map[string]int{Route: http.StatusOK, Route + "?groups=all": http.StatusOK, "/": http.StatusTeapot, Route + "/": http.StatusTeapot, "/group": http.StatusTeapot} {
		if status, _ := get(t, o.Handler(), target); status != want {
			t.Errorf("%s: %d, want %d", target, status, want)
		}
	}
	o.Page = nil
	if status, _ := get(t, o.Handler(), "/"); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
}
