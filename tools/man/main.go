// Command man writes the manual pages of weir and weird: go run ./tools/man docs/man. The verbs
// are in packages main, which only their own tests can reach, so a test does the work.
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
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestManPages$", "./cmd/weir", "./cmd/weird", "-man", dir)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}
