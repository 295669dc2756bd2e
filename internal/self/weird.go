package self

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// daemonName is the program that has what is too heavy for weir.
const daemonName = "weird"

// BecomeWeird runs weird in the place of this process, with the same streams and environment. It
// returns only if it cannot. weird is looked for beside this program, and then in the absolute
// directories of path (the PATH of the environment).
func BecomeWeird(path string, environ []string, args ...string) error {
	var dirs []string
	if own, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(own))
	}
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		program := filepath.Join(dir, daemonName)
		if unix.Access(program, unix.X_OK) != nil {
			continue
		}
		if info, err := os.Stat(program); err != nil || !info.Mode().IsRegular() {
			continue
		}
		return fmt.Errorf("run %s: %w", program, unix.Exec(program, append([]string{daemonName}, args...), environ))
	}
	return &fault.Unsupported{Feature: "run " + daemonName, Reason: "it is neither beside weir nor in a directory of PATH", Remedy: "install it: make install has both"}
}
