package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/keep"
)

// boot is weir's own units for a verb, "restore --at-boot".
func (a *app) boot(feature string) keep.Boot {
	verb, _, _ := strings.Cut(feature, " --at-boot")
	return keep.Boot{Root: a.root, Feature: feature, Instead: "have the boot scripts of this host run weir " + verb}
}

// ownPath is the path of this weir, for systemd to run.
func ownPath() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find weir itself: %w", err)
	}
	return program, plain.Value("the path of weir itself", program)
}
