package pod

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/weir-io/weir/internal/daemon/grpc"
)

// FuzzSandbox: what a runtime says of a pod is taken as bytes; a name that can be shown and
// typed has no control characters and no slash.
func FuzzSandbox(f *testing.F) {
	f.Add(grpc.AppendString(grpc.AppendString(nil, 1, "abc"), 2, string(grpc.AppendString(nil, 3, "default"))))
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, item []byte) {
		s, err := sandboxOf(item)
		if err != nil {
			return
		}
		if len(s.id)+len(s.name)+len(s.uid)+len(s.namespace) > 4*len(item) {
			t.Errorf("%d bytes say %+v", len(item), s)
		}
		if isName(s.name) && strings.ContainsFunc(s.name, func(r rune) bool { return unicode.IsControl(r) || r == '/' }) {
			t.Errorf("%q is a name", s.name)
		}
	})
}

// FuzzContainer: so is what it says of a container.
func FuzzContainer(f *testing.F) {
	f.Add(grpc.AppendString(grpc.AppendString(grpc.AppendString(nil, 1, "abc"), 2, "s1"), 3, string(grpc.AppendString(nil, 1, "web"))))
	f.Add([]byte{0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, item []byte) {
		id, sandbox, name, err := containerOf(item)
		if err == nil && len(id)+len(sandbox)+len(name) > 3*len(item) {
			t.Errorf("%d bytes say %q in %q, called %q", len(item), id, sandbox, name)
		}
	})
}

// FuzzEndpoint: from any crictl configuration comes a path on this host, or an error.
func FuzzEndpoint(f *testing.F) {
	for _, text := range []string{"runtime-endpoint: unix:///run/containerd/containerd.sock\n", `runtime-endpoint: "unix:///x" # y`, "runtime-endpoint:", "runtime-endpoint: tcp://1.2.3.4:5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		endpoint := endpointIn(text)
		if strings.Contains(endpoint, "\n") {
			t.Errorf("%q goes over a line", endpoint)
		}
		if socket, err := socketOf("x", endpoint); err == nil && !filepath.IsAbs(socket) {
			t.Errorf("%q is %q", endpoint, socket)
		}
	})
}
