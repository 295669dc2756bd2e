//go:build !(386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm)

package partial

import (
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
)

// The programs are compiled for little-endian processors only. On others there are none.
type partialObjects struct {
	CountBlock, CountFolio, BeginWrite, EndWrite *ebpf.Program
	BeginStore, BeginStoreBefore                 *ebpf.Program
	Groups, Levels                               *ebpf.Map
}

const partialVarPageBytes = "page_bytes"

func (o *partialObjects) Close() error { return nil }

func loadPartial() (*ebpf.CollectionSpec, error) {
	return nil, fmt.Errorf("weir has no BPF program for %s", runtime.GOARCH)
}
