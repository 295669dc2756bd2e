package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// A stream is in the format of server-sent events (HTML, 9.2). The kinds of events:
//
//	list    the list, whole or what has changed (listEvent)
//	group   one group (groupEvent)
//	trouble why nothing can be shown now
const (
	listKind    = "list"
	groupKind   = "group"
	troubleKind = "trouble"
)

// retryMillis is after what time a browser connects again.
const retryMillis = 1000

// event writes one.
func event(kind string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		return trouble(err) // a figure that is no number
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, text)
}

func trouble(err error) []byte {
	text, _ := json.Marshal(message(err)) // a string always can
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", troubleKind, text)
}

// stream sends events until the client leaves, is too slow, or the page ends.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	path, one := r.URL.Query()["cgroup"]
	if one && len(path) != 1 {
		p.refuse(w, http.StatusBadRequest, "cgroup: name one.")
		return
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	frames, leave := p.follow.join()
	if frames == nil {
		w.Header().Set("Retry-After", "10")
		p.refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are live already, and more cannot be.", streamsMost))
		return
	}
	defer leave()
	out := http.NewResponseController(w)
	// The server's time to read a request would end the stream, which it goes on reading from.
	_ = out.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy is not to hold events back
	send := func(text []byte) bool {
		// Without deadlines (some servers of tests) the server's own are in force.
		_ = out.SetWriteDeadline(time.Now().Add(sendMost))
		_, err := w.Write(text)
		return err == nil && out.Flush() == nil
	}
	if !send(fmt.Appendf(nil, "retry: %d\n\n", retryMillis)) {
		return
	}
	first := true
	for {
		select {
		case <-r.Context().Done():
			return
		case f, is := <-frames:
			if !is {
				return
			}
			text := f.changes
			switch {
			case f.err != nil:
			case one:
				text = event(groupKind, p.groupEvent(f.snapshot, f.measured, path[0]))
			case first:
				text = f.list.since(nil)
			}
			first = f.err != nil
			if !send(text) {
				return
			}
		}
	}
}
