// Command man writes weir's manual pages: go run ./tools/man docs/man. The verbs are
// in package main, which only its own tests can reach, so a test does the work.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: go run ./tools/man DIR")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestManPages$", "./cmd/weir", "-man", dir)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}
