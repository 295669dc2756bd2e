package escape_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// A document is what these tests read of weir run's.
type document struct {
	Written uint64 `json:"written_bytes"`
	Escaped uint64 `json:"escaped_bytes"`
	Stops   uint64
	Devices []struct {
		Write struct {
			Held    string
			Bytes   uint64
			Seconds float64
		}
	}
}

// weirRun runs a command by weir run, and returns its document and what it said.
func weirRun(t *testing.T, args ...string) (doc document, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "weir", append([]string{"run", "--json"}, args...)...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("weir run %v: %v: %s", args, err, &messages)
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Devices) != 1 {
		t.Fatalf("weir run %v: %v: %s", args, err, out)
	}
	t.Logf("%+v\n%s", doc, &messages)
	return doc, messages.String()
}

// Writes to another group's file go past the kernel's limit, and weir run says so. Writes to
// the command's own file are held.
func TestRunTellsWhatEscaped(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.Once, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	limits := []string{"--hold", "kernel", "--write", "10MB/s", "--on", disk.Dir, "--"}
	dd := []string{"dd", "if=/dev/zero", "bs=1M", "conv=notrunc,fsync"}
	file := foreign(t, disk.Dir, "alive", 40)
	// dd is done in as little as 30 ms: to be named, the file is open until somebody has looked.
	script := fmt.Sprintf("exec 3>>%s; %s of=%[1]s count=40; sleep 0.3", file, strings.Join(dd, " "))
	doc, said := weirRun(t, append(slices.Clone(limits), "sh", "-c", script)...)
	if d := doc.Devices[0].Write; d.Held != "not_held" || doc.Escaped < 38*mib || doc.Escaped > 41*mib || doc.Written < 40*mib {
		t.Errorf("over another's file: %+v", doc)
	}
	for _, want := range []string{"NOT held", "MB went past the limit", file} {
		if !strings.Contains(said, want) {
			t.Errorf("weir run said %q, want %q in it", said, want)
		}
	}
	doc, said = weirRun(t, slices.Concat(limits, dd, []string{"of=" + filepath.Join(disk.Dir, "fresh"), "count=10"})...)
	if d := doc.Devices[0].Write; d.Held != "held" || doc.Escaped > mib || !strings.Contains(said, ": held") {
		t.Errorf("its own file: %+v, %q", doc, said)
	}
}

// While a command does something else, the limit saves nothing up for it: what went past at once did
// so, whatever follows. Bursts that the kernel holds stay held, with rests between them.
func TestRunTellsWhatWentAtOnce(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.Once, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	past := fmt.Sprintf("dd if=/dev/zero of=%s bs=1M conv=notrunc,fsync count=40; sleep 5; dd if=/dev/zero of=%s bs=4096 count=1 conv=fsync", foreign(t, disk.Dir, "alive", 40), filepath.Join(disk.Dir, "late"))
	rests := fmt.Sprintf("for i in 1 2 3; do dd if=/dev/zero of=%s bs=1M count=8 oflag=direct; sleep 2; dd if=/dev/zero of=%[1]s bs=1M count=8 conv=fsync; sleep 2; done", filepath.Join(disk.Dir, "own"))
	for script, want := range map[string]string{past: "not_held", rests: "held"} {
		doc, said := weirRun(t, "--hold", "kernel", "--write", "10MB/s", "--on", disk.Dir, "--", "sh", "-c", script)
		d := doc.Devices[0].Write
		rate := float64(d.Bytes) / d.Seconds
		if d.Held != want || want == "held" && (rate > 12e6 || rate < 8e6) || want == "not_held" && rate < 15e6 {
			t.Errorf("%s: %+v, %.0f bytes/s, want %s: %q", script, d, rate, want, said)
		}
	}
}

// A command that writes a line of a log each second saves nothing up either, and a burst that the kernel holds
// after that stays held.
func TestRunTellsABurstFromALog(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.Once, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	log := fmt.Sprintf("rm -f %s; for i in 1 2 3 4 5 6 7 8; do echo x >> %[1]s; sync %[1]s; sleep 0.7; done; ", filepath.Join(disk.Dir, "log"))
	past := fmt.Sprintf("dd if=/dev/zero of=%s bs=1M conv=notrunc,fsync count=40; sleep 0.3", foreign(t, disk.Dir, "alive", 40))
	own := fmt.Sprintf("dd if=/dev/zero of=%s bs=1M conv=fsync count=40", filepath.Join(disk.Dir, "own"))
	for script, want := range map[string]string{log + past: "not_held", log + own: "held", log: "held"} {
		doc, said := weirRun(t, "--hold", "kernel", "--write", "10MB/s", "--on", disk.Dir, "--", "sh", "-c", script)
		if d := doc.Devices[0].Write; d.Held != want || d.Seconds < 4.5 {
			t.Errorf("%s: %+v, want %s: %q", script, d, want, said)
		}
	}
}

// weir run says so if the command handed its work to a daemon.
func TestRunTellsWhoHandsItsWorkOn(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	docker := filepath.Join(t.TempDir(), "docker")
	if err := os.WriteFile(docker, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, said := weirRun(t, "--write", "10MB/s", "--on", disk.Dir, "--", docker); !strings.Contains(said, "docker hands its work to a daemon") {
		t.Errorf("weir run said %q", said)
	}
}
