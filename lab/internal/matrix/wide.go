package matrix

import (
	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/kernel"
)

// needsNarrowRegisters reports whether a row's kernel does not run where the processor has
// AMX: user-mode Linux 5.10, 6.1 and 6.12 have no room for its registers, and panic when
// the first program starts (put_fp_registers). 7.2 runs.
func (r Row) needsNarrowRegisters() bool {
	return (r.Lane == UML || r.Lane == Full) && r.Kernel != kernel.Newest
}

// WithWideRegisters is what of rows a processor with AMX runs: rows with the newest kernel
// in the place of those of older user-mode Linux, and none twice. That one has no memory
// controller for v1, so that a row with memory apart is emulated. asked are rows of a
// kernel that was asked for: others would be no answer, and they are left out.
func WithWideRegisters(rows []Row, asked bool) (run []Row, changed bool) {
	have := map[string]bool{}
	for _, r := range rows {
		if !r.needsNarrowRegisters() {
			have[r.Name()] = true
		}
	}
	for _, r := range rows {
		if !r.needsNarrowRegisters() {
			run = append(run, r)
			continue
		}
		changed = true
		if r.Mode == environ.Split {
			r.Lane = QEMU
		} else {
			r.Kernel = kernel.Newest
		}
		if !asked && !have[r.Name()] {
			have[r.Name()] = true
			run = append(run, r)
		}
	}
	return run, changed
}
