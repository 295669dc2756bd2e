package tool

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	for script, want := range map[string]struct{ out, said, err string }{
		"echo a; echo b >&2":         {"a\n", "b\n", ""},
		"echo b >&2; exit 3":         {"", "b\n", "exit status 3"},
		"cat /dev/zero":              {"", "", "it writes more than 1048576 bytes"},
		"cat /dev/zero >&2":          {"", "", "it writes more than 1048576 bytes"},
		"echo a; sleep 60 &":         {"a\n", "", ""}, // it leaves something that has its streams
		"head -c 1000000 /dev/zero":  {strings.Repeat("\x00", 1_000_000), "", ""},
		"sleep 60 & echo a; sleep 9": {"a\n", "", "signal: killed"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		began := time.Now()
		out, said, err := Run(exec.CommandContext(ctx, "/bin/sh", "-c", script))
		cancel()
		if (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%s: %v, want %q", script, err, want.err)
		}
		if want.err != errLong().Error() && (!bytes.Equal(out, []byte(want.out)) || string(said) != want.said) {
			t.Errorf("%s: %.60q, %.60q", script, out, said)
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("%s took %s", script, took)
		}
	}
}
