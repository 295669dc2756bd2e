package weir_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// tooHeavy are packages that weir must not link, with the reason. Every weir that starts pays
// for their initialisers, also if it never calls them. cmd/weird may link them. A name stands for
// the package and for all below it.
var tooHeavy = map[string]string{
	"net/http":                            "adds half a millisecond to each start; the engines are asked in HTTP/1.0 by hand",
	"github.com/containerd/nri":           "links protobuf; only the daemon talks to runtimes all the time",
	"google.golang.org/grpc":              "initialises as much as the rest of weir; internal/daemon/grpc makes single calls",
	"google.golang.org/protobuf":          "registers its types at the start; internal/daemon/grpc reads the few fields",
	"github.com/prometheus/client_golang": "links net/http and protobuf",
	"github.com/cilium/ebpf":              "makes its tables at the start; helpers that are weird load BPF programs",
	"go.yaml.in/yaml":                     "compiles its patterns at the start; a helper that is weird reads plans",
	"golang.org/x/net":                    "makes its tables at the start; internal/daemon/grpc reads headers itself",
	"encoding/xml":                        "makes its tables at the start",
	"compress":                            "makes its tables at the start; a helper that is weird reads /proc/config.gz",
	"hash/crc32":                          "makes its tables at the start; hash/fnv has none, and internal/agent/journal makes its own when it is used",
	"github.com/charmbracelet":            "bubbletea asks the terminal at the start; internal/ui/tui paints by itself",
	"charm.land":                          "bubbletea from version 2 on",
}

// linkedMost bounds what weir links, the standard library's packages with it: a number is steadier
// than a time.
const linkedMost = 225

func heavy(path string) string {
	for name, reason := range tooHeavy {
		if path == name || strings.HasPrefix(path, name+"/") {
			return reason
		}
	}
	return ""
}

// TestWeirStaysLight looks through all that is linked into weir, whoever imports it.
func TestWeirStaysLight(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./cmd/weir").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "github.com/spf13/cobra") {
		t.Fatalf("go list tells of %d packages, and not of those that weir is made of", len(linked))
	}
	if n := len(linked); n > linkedMost {
		t.Errorf("weir links %d packages, and %d are the most; go run ./tools/bench start says what they cost at each start", n, linkedMost)
	}
	for _, path := range linked {
		if why := heavy(path); why != "" {
			t.Errorf("weir links %s, which %s", path, why)
		}
	}
}

func TestHeavy(t *testing.T) {
	for path, want := range map[string]bool{
		"net/http": true, "net/http/httptrace": true, "net": false, "golang.org/x/net/http2/hpack": true, "vendor/golang.org/x/net/dns/dnsmessage": false, "github.com/cilium/ebpf/internal/sys": true,
		"google.golang.org/grpc": true, "google.golang.org/grpc/codes": true, "google.golang.org/protobuf/encoding/protowire": true,
		"github.com/charmbracelet/bubbletea": true, "github.com/spf13/cobra": false,
	} {
		if got := heavy(path) != ""; got != want {
			t.Errorf("%s is too heavy: %v, want %v", path, got, want)
		}
	}
}
