package engine

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/lab"
)

func TestEvents(t *testing.T) {
	lab.Unit(t)
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	asked, more, end := make(chan string, 1), make(chan string), make(chan bool)
	socket := sockettest.Serve(t, func(out http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.URL.Query().Get("filters")
		out.WriteHeader(http.StatusOK)
		out.(http.Flusher).Flush()
		for {
			select {
			case text := <-more:
				_, _ = fmt.Fprint(out, text)
				out.(http.Flusher).Flush()
			case <-end:
				return
			}
		}
	})
	got, ready, failed := make(chan Event, 8), make(chan bool, 1), make(chan error, 1)
	go func() {
		failed <- Kind{Maker: docker, Host: "unix://" + socket}.Events(t.Context(), func() { ready <- true }, func(e Event) { got <- e })
	}()
	if q := <-asked; q != `/events {"type":["container"]}` {
		t.Error(q)
	}
	<-ready
	more <- `{"Type":"container","Action":"start","Actor":{"ID":"` + a + `","Attributes":{"name":"web"}}}` + "\n"
	if e := <-got; e != (Event{ID: a}) {
		t.Errorf("%+v", e)
	}
	more <- `{"Action":"exec_start: sh","Actor":{"ID":"` + a + `"}}{"Action":"start","Actor":{"ID":"../x"}}{"Action":"die","Ac`
	more <- `tor":{"ID":"` + b + `"}}` + "\n"
	if e := <-got; e != (Event{ID: b, Ended: true}) {
		t.Errorf("%+v", e)
	}
	for action, want := range map[string]Event{"create": {ID: a, What: Made}, "rename": {ID: a, What: Renamed}, "destroy": {ID: a, Ended: true, What: Removed}} {
		more <- `{"Action":"` + action + `","Actor":{"ID":"` + a + `"}}` + "\n"
		if e := <-got; e != want {
			t.Errorf("%s: %+v", action, e)
		}
	}
	end <- true
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Error(err)
	}
}

func TestEventsEndWithTheContext(t *testing.T) {
	lab.Unit(t)
	socket := sockettest.Serve(t, func(out http.ResponseWriter, r *http.Request) {
		out.WriteHeader(http.StatusOK)
		out.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	err := Kind{Maker: docker, Host: "unix://" + socket}.Events(ctx, cancel, func(Event) {})
	if err != context.Canceled {
		t.Error(err)
	}
}

func TestEventsAreRefused(t *testing.T) {
	lab.Unit(t)
	refuses := sockettest.Serve(t, func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprint(out, `{"message":"no more watchers"}`)
	})
	for socket, says := range map[string]string{refuses: "no more watchers", t.TempDir() + "/none": "there is no Docker at"} {
		err := Kind{Maker: docker, Host: "unix://" + socket}.Events(t.Context(), func() { t.Error("ready") }, func(Event) { t.Error("an event") })
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// An event that is too large tells that something has changed, and keeps no other from coming.
func TestLargeEvents(t *testing.T) {
	lab.Unit(t)
	event := func(label int) string {
		return `{"Action":"start","Actor":{"ID":"` + strings.Repeat("a", 64) + `","Attributes":{"l":"` + strings.Repeat("x", label) + `"}}}` + "\n"
	}
	var got []Event
	all := 0
	err := readEvents(strings.NewReader(event(10)+event(10<<20)+event(eventBytesMax/2)+event(eventBytesMax)+event(20)), func() { all++ }, func(e Event) { got = append(got, e) })
	if len(got) != 3 || all != 2 || err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("%d events, %d looks at all, %v", len(got), all, err)
	}
	// What is cut off is an error, however long it is.
	for _, size := range []int{10, 10 << 20} {
		if err := readEvents(strings.NewReader(strings.TrimSpace(event(size))), func() {}, func(Event) {}); err == nil || strings.Contains(err.Error(), "has ended") {
			t.Errorf("cut off after %d bytes: %v", size, err)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add(`{"Action":"start","Actor":{"ID":"` + strings.Repeat("a", 64) + `"}}`)
	f.Add(`[{}]`)
	f.Add(`{"Action":"die"}{"Action":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		began := time.Now()
		err := readEvents(strings.NewReader(text+"\n"), func() {}, func(e Event) {
			if len(e.ID) != 64 || slices.Contains([]byte(e.ID), '/') {
				t.Errorf("%q", e.ID)
			}
		})
		if err == nil || time.Since(began) > time.Minute {
			t.Error(err)
		}
	})
}
