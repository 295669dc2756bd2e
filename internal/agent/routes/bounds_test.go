package routes

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
)

// Plans of a request are read one after the other, and only so many: whoever may read cannot have weird take hundreds of
// megabytes.
func TestChecksAreBounded(t *testing.T) {
	s := serve(t, newFake(), nil)
	for name, text := range map[string]string{"a list": "assign: [" + strings.Repeat("1,", 500_000) + "1]", "lines": strings.Repeat("-\n", 500_000), "comments": strings.Repeat("#\n\n", 300_000),
		"directives": strings.Repeat("%TAG !a! b\n", 90_000), "pairs": "[" + strings.Repeat(":,", 500_000) + "]"} {
		if status, text := s.ask(s.read, "POST", Check, text); status != 400 || !strings.Contains(text, "more than 100000 keys and values") {
			t.Errorf("%s: %d %.300s", name, status, text)
		}
	}
	most := "plans: {a: {write: 1}}\nassign:\n" + strings.Repeat("- {docker: \"web-*\", plan: a}\n", 10_000) // as many as there can be
	if status, text := s.ask(s.read, "POST", Check, most); status != 200 {
		t.Errorf("%d %.300s", status, text)
	}
	conn, err := net.Dial("unix", s.read)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST "+Check+" HTTP/1.1\r\nHost: weird\r\nContent-Length: 100\r\n\r\nplans: "); err != nil { // and no more
		t.Fatal(err)
	}
	s.until("one is read", http.StatusServiceUnavailable, "POST", Check)
	if status, text := s.ask(s.read, "GET", Status, ""); status != 200 {
		t.Errorf("a check keeps others waiting: %d %s", status, text)
	}
	if status, text := s.ask(s.change, "POST", Check, ""); status != 200 {
		t.Errorf("those who may read keep others waiting: %d %s", status, text)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	s.until("none is read", http.StatusOK, "POST", Check)
}

// until asks at the socket for reading until a status is answered.
func (s *served) until(what string, want int, method, path string) {
	s.t.Helper()
	for began := time.Now(); ; {
		status, text := s.ask(s.read, method, path, "")
		if status == want {
			return
		}
		if time.Since(began) > patience {
			s.t.Fatalf("not %s: %d %.300s", what, status, text)
		}
	}
}

// Answers that clients are slow to take are as few as the requests that are worked on.
func TestSlowReaders(t *testing.T) {
	f := newFake()
	for i := range 2000 { // more than a socket takes
		f.status.Targets = append(f.status.Targets, reconcile.Status{Key: fmt.Sprint("docker:x", i), Name: fmt.Sprint("docker:x", i), Finding: strings.Repeat("x", 1000)})
	}
	s := serve(t, f, nil)
	for range workersMost {
		conn, err := net.Dial("unix", s.read)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET "+Status+" HTTP/1.1\r\nHost: weird\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	s.until("busy", http.StatusServiceUnavailable, "GET", Health)
	if status, text := s.ask(s.change, "POST", Reload, ""); status != 200 {
		t.Errorf("readers keep others from changing: %d %s", status, text)
	}
	s.until("free", http.StatusOK, "GET", Health) // it waits for them for a while only
}

// Nobody gets more of the journal than it usually has.
func TestLogIsBounded(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	for path, want := range map[string]int{Log: LogUsual, Log + "?most=1000000000": LogMost, Log + "?most=7": 7} {
		if status, text := s.ask(s.read, "GET", path, ""); status != 200 || f.query.Most != want {
			t.Errorf("%s: %d %s, %d entries, want %d", path, status, text, f.query.Most, want)
		}
	}
}
