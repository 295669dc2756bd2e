package engine

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
)

const id = "3f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"

func serve(t *testing.T, handler http.HandlerFunc) daemon {
	t.Helper()
	return daemon{sockettest.Serve(t, handler)}
}

// A server that speaks HTTP/1.1, and to others in pieces, is understood.
func TestInspect(t *testing.T) {
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/containers/web/json" || r.Host != "docker" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"message":"No such container: x"}`)
			return
		}
		_, _ = io.WriteString(w, `{"Id":"`+id+`","Name":"/web","State":{"Status":"running","Pid":4711},`)
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, `"HostConfig":{"BlkioDeviceReadBps":null,"BlkioDeviceWriteBps":[{"Path":"/dev/vda","Rate":1048576}]}}`)
	})
	c, err := e.inspect(t.Context(), "web")
	if err != nil || c.ID != id || c.State.Pid != 4711 || len(c.HostConfig.BlkioDeviceWriteBps) != 1 || c.HostConfig.BlkioDeviceWriteBps[0] != (throttle{"/dev/vda", 1 << 20}) {
		t.Errorf("%+v, %v", c, err)
	}
	var refused *refusal
	if _, err := e.inspect(t.Context(), "x"); !errors.As(err, &refused) || *refused != (refusal{404, "No such container: x"}) {
		t.Errorf("of an unknown container: %v", err)
	}
}

// A daemon that does not answer is not waited for without an end.
func TestInspectEnds(t *testing.T) {
	stop := make(chan struct{})
	e := serve(t, func(http.ResponseWriter, *http.Request) { <-stop })
	defer close(stop)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := e.inspect(ctx, "web"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestReadAnswer(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.0 200 OK\r\nContent-Type: x\r\n\r\n{}":        "",
		"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\n{}trailing": "",
		"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n{}":      "read answer: it ends in the middle",
		"HTTP/1.0 200 OK\r\nContent-Length: x\r\n\r\n{}":      `read answer: length "x"`,
		"HTTP/1.0 200 OK\r\n":                                 "read answer: it ends in the middle",
		"":                                                    "read answer: it ends in the middle",
		"hello\r\n\r\n":                                       "the answer is not HTTP",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}": "read answer: it is chunked, which HTTP/1.0 does not have; name the engine's own socket",
		"HTTP/1.0 500 No\r\n\r\n{\"message\":\"a\\nb\"}":               "500: a\nb",
		"HTTP/1.0 502 No\r\n\r\n<html>":                                "502: no message",
	} {
		a, err := readAnswer(strings.NewReader(answer))
		if got := errorText(err); got != want || err == nil && string(a.body) != "{}" {
			t.Errorf("%q: %q, %q; want %q", answer, a.body, got, want)
		}
	}
	endless := io.MultiReader(strings.NewReader("HTTP/1.0 200 OK\r\n\r\n"), io.LimitReader(zeros{}, answerBytesMax+1))
	if _, err := readAnswer(endless); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("an endless answer: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func FuzzReadAnswer(f *testing.F) {
	f.Add("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}")
	f.Add("HTTP/1.0 404 \r\n\r\n{\"message\":\"x\"}")
	f.Add("HTTP/1.1 200\ncontent-length: -1\n\n")
	f.Fuzz(func(t *testing.T, answer string) {
		a, err := readAnswer(strings.NewReader(answer))
		if err == nil && len(a.body) > len(answer) {
			t.Errorf("%d bytes of an answer of %d", len(a.body), len(answer))
		}
	})
}
