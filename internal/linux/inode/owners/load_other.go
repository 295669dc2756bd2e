//go:build !(386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm)

package owners

import (
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
)

// The program is compiled for little-endian processors only. On others there is none.
type ownerObjects struct {
	ListOwners         *ebpf.Program
	Processes, Queries *ebpf.Map
}

func (o *ownerObjects) Close() error { return nil }

func loadOwnerObjects(any, *ebpf.CollectionOptions) error {
	return fmt.Errorf("weir has no BPF program for %s", runtime.GOARCH)
}
