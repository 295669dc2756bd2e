// Command findings writes the page that explains each finding of weir why, from the rules
// that make them: go run ./tools/findings internal/look/why docs/guide/findings.md. A test
// says so when the page is not what the rules say.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "findings:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: go run ./tools/findings PACKAGE PAGE")
	}
	findings, err := read(args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], page(findings), 0o644)
}
