package cri

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
)

func pod(name string, annotation []byte) []byte {
	return grpc.AppendString(grpc.AppendString(grpc.AppendString(nil, 1, name), 6, string(annotation)), 7, "runc")
}

// A list that is larger than a runtime sends in one message comes in several, if the runtime knows that. Of one that does not
// it is said.
func TestAListOfSeveralMessages(t *testing.T) {
	for _, streams := range []bool{true, false} {
		var asked []string
		socket := grpctest.Serve(t, func(method string, _ http.Header, request []byte) grpctest.Answer {
			asked = append(asked, strings.TrimPrefix(method, Service))
			if string(request) != "\x0a\x06filter" {
				t.Errorf("asked for %q", request)
			}
			switch {
			case method == Service+"ListPodSandbox":
				return grpctest.Answer{Code: grpc.ResourceExhausted, Text: "grpc: trying to send message larger than max (17000000 vs. 16777216)"}
			case method == Service+"StreamPodSandboxes" && streams:
				first := grpc.AppendString(grpc.AppendString(nil, 1, string(pod("a", []byte("x")))), 1, string(pod("b", nil)))
				return grpctest.Answer{Stream: slices.Values([][]byte{first, grpc.AppendString(nil, 1, string(pod("c", nil)))})}
			}
			return grpctest.Answer{Code: grpc.Unimplemented, Text: "unknown method"}
		})
		var all []string
		err := List(t.Context(), socket, Sandboxes, []byte("filter"), grpc.Pick{Fields: []grpc.FieldNumber{1, 6}}, func(thing []byte, _ bool) error {
			all = append(all, string(thing))
			return nil
		})
		want := []string{"\x0a\x01a\x32\x01x", "\x0a\x01b\x32\x00", "\x0a\x01c\x32\x00"}
		if !streams {
			want = nil
		}
		if !slices.Equal(all, want) || grpc.IsCode(err, grpc.ResourceExhausted) == streams || (err == nil) != streams || fmt.Sprint(asked) != "[ListPodSandbox StreamPodSandboxes]" {
			t.Errorf("%q, %v; asked %q", all, err, asked)
		}
	}
}

// A list is longer than a message that is read whole, and one of it that is too large keeps no other from being listed.
func TestALargeList(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 1<<20)
	for most, want := range map[int]bool{len(large): true, 3 * len(large): false} {
		var whole []byte
		for i := range 20 {
			whole = grpc.AppendString(whole, 1, string(pod(fmt.Sprint("p", i), large)))
		}
		whole = grpc.AppendString(whole, 1, string(pod("last", bytes.Repeat([]byte("x"), most))))
		socket := grpctest.Serve(t, func(string, http.Header, []byte) grpctest.Answer { return grpctest.Answer{Message: whole} })
		n, last := 0, false
		err := List(t.Context(), socket, Sandboxes, nil, grpc.Pick{Fields: []grpc.FieldNumber{1, 6}}, func(thing []byte, whole bool) error {
			if n, last = n+1, whole; !whole && string(thing) != "\x0a\x04last" {
				t.Errorf("one that is cut: %.100q", thing)
			}
			return nil
		})
		if err != nil || n != 21 || last != want {
			t.Errorf("one of %d bytes: %d listed, the last whole: %t, %v", most, n, last, err)
		}
	}
}

func TestPID(t *testing.T) {
	info := func(key, text string) []byte {
		return grpc.AppendString(nil, 2, string(grpc.AppendString(grpc.AppendString(nil, 1, key), 2, text)))
	}
	status := grpc.AppendString(nil, 1, "status")
	for _, c := range []struct {
		answer []byte
		pid    int
	}{
		{slices.Concat(status, info("other", "{"), info("info", `{"sandboxID":"s1","pid":4711,"runtimeSpec":{"linux":{}},"privileged":false}`)), 4711},
		{status, 0}, {info("other", `{"pid":1}`), 0}, {info("info", `{}`), 0},
	} {
		if pid, err := PID(c.answer); pid != c.pid || err != nil {
			t.Errorf("%q: %d, %v", c.answer, pid, err)
		}
	}
	for _, broken := range [][]byte{info("info", "["), {0x12, 0x05}, grpc.AppendString(nil, 2, "\x0a\x05")} {
		if pid, err := PID(broken); err == nil {
			t.Errorf("%q: %d", broken, pid)
		}
	}
}
