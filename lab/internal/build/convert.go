package build

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// A Converter is go's test2json.
type Converter struct{ program string }

// FindConverter has go say where its test2json is, built if need be. (Started by "go tool", it
// takes thirteen times as long, and a run needs it for each suite of each guest.)
func FindConverter(ctx context.Context, root string) (Converter, error) {
	out, err := goTool(ctx, root, "tool", "-n", "test2json")
	if err != nil {
		return Converter{}, err
	}
	return Converter{strings.TrimSpace(out)}, nil
}

// Events converts what a test binary printed with -test.v=test2json.
func (c Converter) Events(ctx context.Context, log []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.program, "-t") // -t: with the time that each test took
	cmd.Stdin = bytes.NewReader(log)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("test2json: %w", err)
	}
	return out, nil
}
