package main

import (
	"testing"

	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/cli/mantest"
	"github.com/weir-io/weir/lab"
)

// TestManPages makes the manual pages from the verbs, and holds docs/man against them.
func TestManPages(t *testing.T) {
	lab.Unit(t)
	mantest.Check(t, newRoot(&cli.Out{}))
}

// No line of help is wider than 80 columns.
func TestHelpFits(t *testing.T) {
	lab.Unit(t)
	root := newRoot(&cli.Out{})
	cli.CheckCobras(root)
	mantest.Fits(t, root)
}
