// Command mutants puts faults into weir, one at a time, in a copy of the last commit, and
// runs the tests that must see each: "make mutants". A fault that no test sees is a gap in
// the tests, and the command fails. Its table is for docs/RESULTS.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	only := flag.String("run", "", "mutants whose name matches this `regexp` only")
	unit := flag.Bool("unit", false, "only those that unit tests see: no guest is booted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if err := run(ctx, *only, *unit); err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, unit bool) (err error) {
	selected, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	parent, err := os.MkdirTemp("", "weir-mutants-")
	if err != nil {
		return err
	}
	tree := filepath.Join(parent, "weir")
	if err := git(ctx, "worktree", "add", "--quiet", "--detach", tree, "HEAD"); err != nil {
		return errors.Join(err, os.RemoveAll(parent))
	}
	defer func() {
		err = errors.Join(err, git(context.WithoutCancel(ctx), "worktree", "remove", "--force", tree), os.RemoveAll(parent))
	}()
	var errs []error
	known := make(map[string]bool)
	fmt.Println("| fault | file | seen by | s |")
	fmt.Println("|---|---|---|---|")
	for _, m := range slices.Concat(mutants, verbMutants, foundMutants, agentMutants, nriMutants) {
		if !selected.MatchString(m.name) || unit && m.lab != "" {
			continue
		}
		began := time.Now()
		by, err := "", m.green(ctx, tree, known)
		if err == nil {
			by, err = m.try(ctx, tree)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			by = "**nobody**"
			errs = append(errs, fmt.Errorf("%s: %w", m.name, err))
		}
		fmt.Printf("| %s | %s | %s | %.0f |\n", m.name, m.file, by, time.Since(began).Seconds())
	}
	return errors.Join(errs...)
}

func git(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil
}

// failed is a test that failed, in what go test and the lab print.
var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)|^==== \S+: \S+ (\S+) (?:failed|broken)$`)

// command is go's arguments for the tests that must see the fault.
func (m mutant) command() []string {
	if m.lab != "" {
		return append([]string{"run", "./lab/cmd/lab", "-run", m.run}, strings.Fields(m.lab)...)
	}
	return append([]string{"test", "-vet=off", "-run", m.run}, m.packages...)
}

func (m mutant) tests(ctx context.Context, tree string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", m.command()...)
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd.CombinedOutput()
}

// green runs the tests without a fault: one that is red anyway would seem to see it.
func (m mutant) green(ctx context.Context, tree string, known map[string]bool) error {
	command := strings.Join(m.command(), " ")
	if known[command] {
		return nil
	}
	if out, err := m.tests(ctx, tree); err != nil {
		return fmt.Errorf("without the fault: go %s: %w\n%s", command, err, out)
	}
	known[command] = true
	return nil
}

// try makes the fault, runs its tests, and mends it. It returns the tests that saw it.
func (m mutant) try(ctx context.Context, tree string) (by string, err error) {
	path := filepath.Join(tree, m.file)
	before, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(before), m.was); n != 1 {
		return "", fmt.Errorf("%q is %d times in %s, want once", m.was, n, m.file)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(before), m.was, m.is, 1)), 0o644); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.WriteFile(path, before, 0o644)) }()
	build := exec.CommandContext(ctx, "go", "build", "-o", os.DevNull, "./cmd/weir")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not compile: %w\n%s", err, out)
	}
	out, err := m.tests(ctx, tree)
	for _, match := range failed.FindAllStringSubmatch(string(out), -1) {
		if name := match[1] + match[2]; !strings.Contains(by, name) {
			by = strings.TrimPrefix(by+", "+name, ", ")
		}
	}
	switch {
	case err == nil:
		return "", fmt.Errorf("no test saw it: go %s", strings.Join(m.command(), " "))
	case by == "":
		return "", fmt.Errorf("the tests did not run: %w\n%s", err, out)
	}
	return by, nil
}
