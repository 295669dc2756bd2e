package guestrun

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab/internal/guest"
	"github.com/weir-io/weir/lab/internal/payload"
)

// Suites that bear it run two at once, whatever stands between them; others alone.
func TestRunBeside(t *testing.T) {
	dir, results := t.TempDir(), t.TempDir()
	order := payload.Order{Suites: []guest.Suite{
		{Name: "a", Beside: true}, {Name: "b", Beside: true}, {Name: "c", Beside: true}, {Name: "alone"}, {Name: "d", Beside: true},
	}}
	running := filepath.Join(t.TempDir(), "running")
	if err := os.Mkdir(running, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, s := range order.Suites {
		suite := filepath.Join(dir, "suites", s.Name)
		if err := os.MkdirAll(suite, 0o755); err != nil {
			t.Fatal(err)
		}
		script := "#!/bin/sh\ntouch " + running + "/" + s.Name + "; sleep 0.3; ls " + running + "; sleep 0.2; rm " + running + "/" + s.Name + "\n"
		if err := os.WriteFile(filepath.Join(suite, "test"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, payload.JobFile), data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), Config{Payload: dir, Results: results, Events: io.Discard, AtOnce: 2, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	saw := func(suite string) string {
		text, err := os.ReadFile(filepath.Join(results, payload.OutputFile(suite)))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(text)), " ")
	}
	if got := saw("a"); got != "a b" {
		t.Errorf("beside a ran %q", got)
	}
	if got := saw("alone"); got != "alone" {
		t.Errorf("beside one that runs alone ran %q", got)
	}
	if got := saw("d"); got != "d" {
		t.Errorf("with d ran %q", got)
	}
}

func TestEvents(t *testing.T) {
	var log, to bytes.Buffer
	e := &events{log: &log, to: &to}
	for _, part := range []string{"\x16=== RUN   Te", "stA\nnoise\n\x16--- PASS: TestA (0.00s)\n    \x16--- SKIP: TestB\n", "PASS"} {
		if _, err := e.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- SKIP: TestB\n"
	if to.String() != want {
		t.Errorf("passed on %q, want %q", to.String(), want)
	}
	if !bytes.HasSuffix(log.Bytes(), []byte("PASS")) {
		t.Errorf("log lost something: %q", log.String())
	}
}

func TestFileSystem(t *testing.T) {
	for name, want := range map[string]string{"ext4-0": "ext4", "raw-1": "", "job": ""} {
		if got := fileSystem(name); got != want {
			t.Errorf("fileSystem(%q) = %q, want %q", name, got, want)
		}
	}
}
