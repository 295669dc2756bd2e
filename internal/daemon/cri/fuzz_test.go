package cri

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/grpc"
)

// FuzzStatus: whatever a runtime says of a container or a sandbox, JSON within protobuf, its process is a number
// or an error.
func FuzzStatus(f *testing.F) {
	entry := func(key, value string) []byte {
		return grpc.AppendString(nil, 2, string(grpc.AppendString(grpc.AppendString(nil, 1, key), 2, value)))
	}
	f.Add(entry("info", `{"pid":4711}`))
	f.Add(entry("info", `{"pid":-1,"config":{"labels":null}}`))
	f.Add(append(entry("version", "x"), entry("info", `[1]`)...))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if pid, err := PID(answer); err == nil && pid != 0 && !strings.Contains(strings.ToLower(string(answer)), "pid") {
			t.Errorf("%q is process %d", answer, pid)
		}
	})
}
