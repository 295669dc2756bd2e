package fullguest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// saidMax is how much of a tool's output an error quotes: its end.
const saidMax = 2000

// tool runs a program of the host to its end. When ctx ends it gets SIGTERM, on
// which mmdebstrap takes its mounts away, and time for that.
func tool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(said.String())
		if len(text) > saidMax {
			text = "… " + text[len(text)-saidMax:]
		}
		return fmt.Errorf("%s: %w: %s", name, err, text)
	}
	return nil
}
