package guestrun

import (
	"bytes"
	"testing"
)

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
