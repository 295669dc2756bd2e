package main

import (
	"testing"

	"github.com/weir-io/weir/internal/ui/cli/mantest"
	"github.com/weir-io/weir/lab"
)

// TestManPages makes the manual pages from the verbs, and holds docs/man against them.
func TestManPages(t *testing.T) {
	lab.Unit(t)
	mantest.Check(t, newRoot(&app{}))
}
