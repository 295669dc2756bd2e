package main

import (
	"testing"

	"github.com/weir-io/weir/lab/internal/process"
)

func TestCompanion(t *testing.T) {
	for command, failed := range map[string]bool{"true": false, "echo no; exit 3": true} {
		b := newCompanion(command, t.TempDir())
		b.run(t.Context(), process.All)
		if b.failed != failed {
			t.Errorf("%q: failed %t", command, b.failed)
		}
	}
}
