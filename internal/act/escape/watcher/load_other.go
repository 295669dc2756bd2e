//go:build !(386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm)

package watcher

import (
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
)

// The program is compiled for little-endian processors only. On others there is none.
type escapeObjects struct {
	CountEscapes                       *ebpf.Program
	Groups, Levels, Sums, Files, Steps *ebpf.Map
}

const escapeVarPageBytes = "page_bytes"

func (o *escapeObjects) Close() error { return nil }

func loadEscape() (*ebpf.CollectionSpec, error) {
	return nil, fmt.Errorf("weir has no BPF program for %s", runtime.GOARCH)
}
