package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/weir-io/weir/lab/internal/process"
)

// A companion is a command that runs beside guests.
type companion struct {
	command string
	output  string // a file, for what it prints
	failed  bool
}

func newCompanion(command, temp string) *companion {
	return &companion{command: command, output: filepath.Join(temp, "beside")}
}

// run runs it on such a processor (package process), and prints at its end what it printed.
func (b *companion) run(ctx context.Context, cpu int) {
	began := time.Now()
	err := process.Run(ctx, exec.CommandContext(ctx, "sh", "-c", b.command), cpu, b.output, nil)
	text, readErr := os.ReadFile(b.output)
	fmt.Printf("%s", text)
	b.failed = err != nil || readErr != nil
	state := "ok"
	if b.failed {
		state = fmt.Sprintf("FAILED: %v", err)
	}
	if cpu == process.Spare {
		state += ", in the time that guests left"
	}
	logf("%s: %s, %.1fs", b.command, state, time.Since(began).Seconds())
}
